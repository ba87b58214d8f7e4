"""Reports: every figure is the engine's, the page stands alone and works in a browser."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import torch

import framegraft
from framegraft import _native
from framegraft.run import records
from framegraft.tools import report
from framegraft.tools.report import Recorder, page


def helper(x):
    return x.sum().item()


def step(a, b):
    x = a / (torch.abs(a) + 1)
    y = helper(x) + 1
    if b.sum() < 0:
        b = b * -1
    return x * b * y


def peeks(x):
    return x + len(locals())


def recorded():
    with Recorder(["test"]) as recorder:
        compiled = framegraft.compile(step, backend="eager")
        for n in (3, 4):
            for _ in range(3):
                compiled(torch.ones(n), torch.ones(n))
        framegraft.compile(peeks, backend="eager")(torch.ones(3))
    return recorder


def test_totals_are_the_engines():
    recorder = recorded()
    data = recorder.data()
    json.dumps(data)
    totals, stats = data["totals"], framegraft.stats()
    assert totals["graphs"] == stats["graphs"] == len(data["graphs"])
    assert totals["operations"] == stats["graph_ops"]
    assert totals["breaks"] == stats["graph_breaks"] == len(framegraft.break_reasons())
    assert totals["captures"] == len(records.CAPTURES) == len(data["captures"])
    assert totals["eager"] == 1
    assert totals["recompiles"] == sum(c.recompile is not None for c in records.CAPTURES) > 0
    assert totals["guards"] == sum(c.guard_count for c in records.CAPTURES)
    for capture, shown in zip(records.CAPTURES, data["captures"], strict=True):
        assert (shown["number"], shown["graph"] or "", shown["operations"]) == (capture.number, capture.graph, capture.op_count)
        assert shown["phases"] == capture.phases and shown["seconds"] == sum(capture.phases.values())
        assert len(shown["guards"]) == capture.guard_count == sum(g["count"] for g in shown["guard_groups"])
        info = capture.info()
        if info is not None:
            assert [g["code"] for g in shown["guards"]] == info.check_fn.code_parts
            assert [f"{g['code']}  # {g['cause']}" for g in shown["guards"]] == info.check_fn.verbose_code_parts
            assert shown["guard_nanoseconds"] > 0


def test_runs_are_counted():
    data = recorded().data()
    first = data["captures"][0]
    assert first["runs"] == 3 and 0 < first["run_seconds"] <= data["totals"]["run_seconds"]
    assert data["totals"]["runs"] == sum(e["kind"] == "run" for e in data["timeline"]) == sum(c["runs"] for c in data["captures"])
    assert all(0 <= e["start"] <= data["program"]["seconds"] for e in data["timeline"])


@pytest.mark.own_code  # counts graphs behind breaks
def test_lines():
    data = recorded().data()
    shown = {f["name"]: f for f in data["functions"]}
    first = step.__code__.co_firstlineno
    f = shown["step"]
    assert f["line"] == first and f["source"][0] == "def step(a, b):" and f["source"][-1] == "    return x * b * y"
    words = {int(n) - first: word for n, word in f["lines"].items()}
    assert words[1] == words[2] == words[5] == "captured" and words[3] == "break" and 4 not in words
    marks = {m["line"] - first: m for m in f["marks"]}
    assert marks[2]["reason"] == "tensor_item" and not marks[2]["here"]
    assert marks[3]["reason"] == "data_dependent_branch" and marks[3]["here"] and marks[3]["hint"]
    assert shown["helper"]["lines"][str(helper.__code__.co_firstlineno + 1)] == "break"
    assert set(shown["peeks"]["lines"].values()) == {"eager", "break"}


def test_recompiles_tell_was_and_is():
    data = recorded().data()
    found = [c["recompile"] for c in data["captures"] if c["recompile"]]
    assert (found[0]["was"], found[0]["now"]) == ("size=[3]", "size=[4]")
    assert found[0]["cause"] == f"{__file__}:{step.__code__.co_firstlineno + 1}"
    by_number = {c["number"]: c for c in data["captures"]}
    for c in data["captures"]:
        if c["recompile"]:
            assert by_number[c["recompile"]["parent"]]["frame"] == c["frame"]
            assert by_number[c["recompile"]["parent"]]["index"] < c["index"]


def test_graphs():
    recorder = recorded()
    data = recorder.data()
    for graph, capture in zip(data["graphs"], [c for c in recorder.captures if c.graph], strict=True):
        module = capture.info().graph_module
        assert [n["name"] for n in graph["nodes"]] == [n.name for n in module.graph.nodes]
        assert [n["inputs"] for n in graph["nodes"]] == [[i.name for i in n.all_input_nodes] for n in module.graph.nodes]
        assert graph["capture"] == capture.number and "def forward" in graph["code"]
    assert data["graphs"][0]["nodes"][0]["value"] == "f32[3]"
    assert "in step" in data["graphs"][0]["nodes"][1]["where"]


def test_a_training_step_of_bert():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                                     hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = transformers.BertModel(config)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_of(ids):
        hidden = model(input_ids=ids).last_hidden_state
        scale = hidden.detach().abs().max().item()
        loss = (hidden / scale).pow(2).mean()
        print("loss", end="")
        return loss * 2

    with Recorder() as recorder:
        compiled = framegraft.compile(loss_of, backend="aot_eager")
        for length in (4, 4, 6):
            loss = compiled(torch.randint(0, 50, (2, length)))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    data = recorder.data()
    totals, stats = data["totals"], framegraft.stats()
    assert (totals["graphs"], totals["operations"], totals["breaks"]) == (stats["graphs"], stats["graph_ops"], stats["graph_breaks"])
    reasons = [c["break"]["reason"] for c in data["captures"] if c["break"]]
    assert reasons[:2] == ["tensor_item", "print_call"] and [str(b) for b, _ in records.BREAKS] == framegraft.break_reasons()
    again = [c for c in data["captures"] if c["recompile"]]
    why = [(c["recompile"]["was"], c["recompile"]["now"]) for c in again]
    assert any("size=[2, 4]" in was and "size=[2, 6]" in now for was, now in why) and all(was != now for was, now in why)
    for c in data["captures"]:
        code = next(r.code() for r in records.CAPTURES if r.number == c["number"])
        entries = [e for e in _native.cache_entries(code) if e.info.capture.number == c["number"]]
        assert len(entries) == (c["outcome"] == "entry")
        for entry in entries:
            assert len(entry.info.check_fn.code_parts) == len(c["guards"]) and len(entry.program) <= len(c["guards"])
    text = page(data)
    assert embedded(text) == json.loads(json.dumps(data))


def embedded(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def test_the_page_stands_alone(tmp_path):
    recorder = recorded()
    path = recorder.write(tmp_path / "deep" / "page.html")
    text = path.read_text()
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:|//)|@import|url\((?!#)""", text.replace("http://www.w3.org", ""))
    assert "/*DATA*/" not in text and "/*STYLE*/" not in text and "/*SCRIPT*/" not in text
    assert embedded(text)["totals"] == recorder.data()["totals"]


def test_text_of_the_program_cannot_break_the_page():
    recorder = recorded()
    data = recorder.data()
    data["functions"][0]["source"][0] = "</script><!-- <script> & \u2028"
    text = page(data)
    assert embedded(text) == json.loads(json.dumps(data))
    assert text.count("</script>") == 2


def test_report_of_what_is_there(tmp_path):
    compiled = framegraft.compile(step, backend="eager")
    compiled(torch.ones(3), torch.ones(3))
    path = framegraft.report(tmp_path / "now.html")
    data = embedded(path.read_text())
    assert data["totals"]["graphs"] == framegraft.stats()["graphs"]
    assert data["totals"]["guards"] == sum(c.guard_count for c in records.CAPTURES)
    assert data["captures"][0]["transformed"] and data["graphs"][0]["code"]
    assert "break" in data["functions"][0]["lines"].values()


def test_recording(tmp_path):
    with framegraft.recording(tmp_path / "r.html"):
        framegraft.compile(helper, backend="eager")(torch.ones(3))
    assert embedded((tmp_path / "r.html").read_text())["functions"][0]["name"] == "helper"
    assert not framegraft.events.listeners()


def test_environment_variable(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import torch, framegraft\nframegraft.compile(lambda x: x + 1, backend='eager')(torch.ones(2))\n")
    source = str(pathlib.Path(framegraft.__file__).parents[1])
    environment = os.environ | {"FRAMEGRAFT_REPORT": str(tmp_path / "out"), "PYTHONPATH": source}
    subprocess.run([sys.executable, str(program)], check=True, timeout=120, env=environment)
    (html,), (data,) = (tmp_path / "out").glob("*.html"), (tmp_path / "out").glob("*.json")
    assert embedded(html.read_text()) == json.loads(data.read_text())
    assert json.loads(data.read_text())["totals"]["graphs"] == 1 and html.name.startswith("program_")


def test_the_documentation_names_every_field():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "report.md").read_text()
    data = recorded().data()

    def names(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if not key.isdigit():
                    yield key
                yield from names(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from names(inner)

    missing = {name for name in names(data) if f"`{name}`" not in text}
    assert not missing
    assert f"`version` is {report.VERSION}" in text


# --- in a browser ----------------------------------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(not CHROMIUM, reason="needs a Chromium")


def dom(path, fragment="", script="", width=1300):
    """What the page looks like to a browser after its own scripts, and ``script``, have run."""
    text = path.read_text()
    probe = ("<script>window.addEventListener('error', e => document.body.dataset.error = e.message);"
             "window.addEventListener('load', () => { %s })</script>" % script)
    changed = path.with_name("probe.html")
    changed.write_text(text.replace("<head>", "<head>" + probe, 1))
    done = subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--virtual-time-budget=5000",
         "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={path.parent / 'profile'}", "--dump-dom", f"file://{changed}{fragment}"],
        capture_output=True, text=True, timeout=120)
    assert "data-error" not in done.stdout, re.search(r'data-error="[^"]*"', done.stdout)
    assert "<main" in done.stdout, done.stderr
    return done.stdout


@in_browser
def test_overview_in_a_browser(tmp_path):
    recorder = recorded()
    html = dom(recorder.write(tmp_path / "page.html"))
    main = html[html.index("<main"):]
    totals = recorder.data()["totals"]
    assert f"<b>{totals['graphs']}</b>graphs" in main and f"<b>{totals['breaks']}</b>graph breaks" in main
    assert f"<b>{totals['recompiles']}</b>recompiles" in main
    assert "size=[3]" in main and "size=[4]" in main and "data_dependent_branch" in main
    assert main.count("<rect") >= len(recorder.data()["timeline"])


@in_browser
def test_a_function_in_a_browser(tmp_path):
    path = recorded().write(tmp_path / "page.html")
    html = dom(path, "#f0", "document.querySelector('details').open = true")
    main = html[html.index("<main"):]
    assert 'class="line captured"' in main and 'class="line break"' in main
    assert "What runs instead" in main and "class=\"node placeholder\"" in main
    assert "torch's modes" in main.replace("&#39;", "'")


@in_browser
def test_search_in_a_browser(tmp_path):
    path = recorded().write(tmp_path / "page.html")
    script = "const s = document.getElementById('search'); s.value = 'data_dependent'; s.dispatchEvent(new Event('input'))"
    html = dom(path, "", script)
    listed = html[html.index("<nav"):html.index("</nav>")]
    assert 'href="#f0"' in listed and "peeks" not in listed and "1 of 3 functions" in listed


@in_browser
@pytest.mark.parametrize("fragment", ["", "#f0", "#c0"])
def test_no_sideways_scrolling_on_a_phone(tmp_path, fragment):
    path = recorded().write(tmp_path / "page.html")
    script = "document.body.dataset.wide = [...document.querySelectorAll('main *')].length + ':' + (document.documentElement.scrollWidth - innerWidth)"
    html = dom(path, fragment, script, width=500)
    wide = int(re.search(r'data-wide="\d+:(-?\d+)"', html)[1])
    assert wide <= 0


@in_browser
def test_two_hundred_graphs_are_quick(tmp_path):
    data = recorded().data()
    many = dict(data, functions=[], captures=[], graphs=[])
    nodes = [{"name": f"n{i}", "op": "call_function", "target": "add", "inputs": [f"n{i - 1}", f"n{i // 2}"] if i else [], "value": "f32[3]",
              "where": "", "args": ""} for i in range(400)]
    for n in range(200):
        many["functions"].append(dict(data["functions"][0], id=n, name=f"function_{n}", captures=[n]))
        many["captures"].append(dict(data["captures"][0], number=n, function=n, recompile=None))
        many["graphs"].append(dict(data["graphs"][0], name=f"g{n}", capture=n, nodes=nodes))
    many["timeline"] = [{"kind": "capture", "capture": n, "start": n / 100, "seconds": 0.005} for n in range(200)]
    path = tmp_path / "many.html"
    path.write_text(page(many))
    script = ("document.body.dataset.first = performance.now(); const t = performance.now(); location.hash = '#f77'; "
              "setTimeout(() => { document.body.dataset.nodes = document.querySelectorAll('g.node').length }, 500)")
    html = dom(path, "", script)
    assert 'data-nodes="400"' in html and "function_199" in html
