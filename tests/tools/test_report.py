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


def check_figures(recorder):
    """Every figure of the data that the page holds is what the engine has, or the sum of what it has."""
    data = embedded(page(recorder.data()))
    assert data == json.loads(json.dumps(recorder.data()))
    totals, stats, captures, seen = data["totals"], framegraft.stats(), data["captures"], records.CAPTURES
    assert totals["graphs"] == stats["graphs"] == len(data["graphs"]) == sum(c.graph != "" for c in seen)
    assert totals["operations"] == stats["graph_ops"] == sum(c.op_count for c in seen)
    assert totals["breaks"] == stats["graph_breaks"] == len(framegraft.break_reasons()) == sum(c.broken is not None for c in seen)
    assert totals["captures"] == len(seen) == len(captures)
    assert totals["eager"] == sum(c.outcome != "entry" for c in seen)
    assert totals["recompiles"] == sum(c.recompile is not None for c in seen)
    assert totals["guards"] == sum(c.guard_count for c in seen)
    assert totals["functions"] == len(data["functions"])
    assert totals["phases"] == {phase: sum(c.phases[phase] for c in seen) for phase in records.PHASES}
    assert totals["capture_seconds"] == pytest.approx(sum(totals["phases"].values()))
    assert totals["runs"] == sum(c["runs"] for c in captures) == sum(e["kind"] == "run" for e in data["timeline"])
    assert totals["run_seconds"] == pytest.approx(sum(e["seconds"] for e in data["timeline"] if e["kind"] == "run"))
    assert all(0 <= e["start"] and e["start"] + e["seconds"] <= data["program"]["seconds"] for e in data["timeline"])
    assert [e["capture"] for e in data["timeline"] if e["kind"] == "capture"] == [c.number for c in seen]
    functions = {f["id"]: f for f in data["functions"]}
    graphs = {graph["capture"]: graph for graph in data["graphs"]}
    for capture, shown in zip(seen, captures, strict=True):
        for name in ("number", "frame", "index", "resume", "outcome", "attempts", "phases"):
            assert shown[name] == getattr(capture, name)
        assert (shown["graph"] or "", shown["operations"], shown["seconds"]) == (capture.graph, capture.op_count, sum(capture.phases.values()))
        assert shown["number"] in functions[shown["function"]]["captures"] and functions[shown["function"]]["name"] == capture.name
        runs = [e["seconds"] for e in data["timeline"] if e["kind"] == "run" and e["capture"] == capture.number]
        assert (shown["runs"], shown["run_seconds"]) == (len(runs), pytest.approx(sum(runs)))
        check_guards(capture, shown)
        broken = capture.broken
        assert (shown["break"] is None) == (broken is None)
        if broken is not None:
            assert (shown["break"]["reason"], shown["break"]["detail"]) == (broken.reason, broken.detail)
            assert shown["break"]["stack"][-1][:2] == list(broken.user_stack[-1][:2])
        assert (shown["recompile"] is None) == (capture.recompile is None)
        if capture.recompile is not None:
            told = {k: shown["recompile"][k] for k in ("parent", "guard", "cause", "index", "number")}
            assert told == {"parent": capture.recompile.parent, "guard": capture.recompile.guard, "cause": capture.recompile.cause,
                            "index": capture.index, "number": capture.number}
        assert (capture.number in graphs) == bool(capture.graph)
        if capture.graph:
            nodes = recorder.details[capture.number].module.graph.nodes
            graph = graphs[capture.number]
            assert graph["name"] == capture.graph and [n["name"] for n in graph["nodes"]] == [n.name for n in nodes]
            assert sum(n["op"] not in ("placeholder", "output", "get_attr") for n in graph["nodes"]) == capture.op_count
            assert len(graph["inputs"]) == sum(n["op"] == "placeholder" for n in graph["nodes"])
    marks = sorted({(m["capture"], m["reason"]) for f in data["functions"] for m in f["marks"]})
    assert marks == sorted({(c.number, c.broken.reason) for c in seen if c.broken is not None})
    return data


def check_guards(capture, shown):
    assert len(shown["guards"]) == capture.guard_count == sum(g["count"] for g in shown["guard_groups"])
    info, code = capture.info(), capture.code()
    entries = [e for e in _native.cache_entries(code) if e.info is info] if info is not None else []
    assert len(entries) == (shown["outcome"] == "entry")
    for entry in entries:
        assert [g["code"] for g in shown["guards"]] == info.check_fn.code_parts
        assert [f"{g['code']}  # {g['cause']}" for g in shown["guards"]] == info.check_fn.verbose_code_parts
        assert len(entry.program) <= len(shown["guards"])
    costs = [g["nanoseconds"] for g in shown["guard_groups"]]
    if shown["guard_nanoseconds"] is None:
        assert costs == [None] * len(costs)
    else:
        assert sum(costs) == pytest.approx(shown["guard_nanoseconds"]) and all(cost >= 0 for cost in costs)


def test_totals_are_the_engines():
    recorder = recorded()
    totals = check_figures(recorder)["totals"]
    assert totals["eager"] == 1 and totals["recompiles"] > 0 and totals["breaks"] > 2
    assert all(c["guard_nanoseconds"] > 0 for c in recorder.data()["captures"] if c["outcome"] == "entry")


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


class SmallBert(torch.nn.Module):
    """Embeddings, encoder layers and heads as BERT has them, of what torch itself brings."""

    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(50, 32), torch.nn.Embedding(16, 32)
        self.norm = torch.nn.LayerNorm(32)
        layer = torch.nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, input_ids):
        places = torch.arange(input_ids.shape[1])
        return self.encoder(self.norm(self.words(input_ids) + self.places(places)))


def bert_of_transformers():
    transformers = pytest.importorskip("transformers")
    model = transformers.BertModel(transformers.BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0))
    return model, lambda ids: model(input_ids=ids).last_hidden_state


def bert_of_torch():
    model = SmallBert()
    return model, lambda ids: model(input_ids=ids)


@pytest.mark.own_code  # counts graphs behind breaks
@pytest.mark.parametrize("make", [bert_of_torch, bert_of_transformers])
def test_a_training_step_of_bert(make):
    model, call = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_of(ids):
        hidden = call(ids)
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
    data = check_figures(recorder)
    reasons = [c["break"]["reason"] for c in data["captures"] if c["break"]]
    assert reasons[:2] == ["tensor_item", "print_call"]
    again = [c for c in data["captures"] if c["recompile"]]
    why = [(c["recompile"]["was"], c["recompile"]["now"]) for c in again]
    assert any("size=[2, 4]" in was and "size=[2, 6]" in now for was, now in why) and all(was != now for was, now in why)
    runs = [c["runs"] for c in data["captures"]]
    assert (runs[0], runs[2]) == (2, 3) and sum(runs) == data["totals"]["runs"] == 9
    aliasing = next(g for g in data["captures"][0]["guard_groups"] if g["name"] == "aliasing")
    assert aliasing["nanoseconds"] < data["captures"][0]["guard_nanoseconds"]


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
