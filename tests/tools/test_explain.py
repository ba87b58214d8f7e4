"""explain and status: right counts, words that help, and nothing left behind."""

import io
import sys
import weakref

import pytest
import torch
from rich.console import Console

import framegraft
from framegraft import _native
from framegraft.run import records


def helper(x):
    return x.sum().item()


def breaking(a, b):
    x = a / (torch.abs(a) + 1)
    y = helper(x) + 1
    return x * b * y


def whole(x):
    return torch.relu(x) + 1


X = torch.linspace(-1, 2, 5)


def test_both_forms():
    first, second = framegraft.explain(whole, X), framegraft.explain(whole)(X)
    for e in (first, second):
        assert torch.equal(e.result, whole(X))
        assert (e.graph_count, e.graph_break_count, e.op_count) == (1, 0, 2)
        assert e.graphs[0].graph.find_nodes(op="call_function", target=torch.relu)
        assert (e.coverage.captured, e.coverage.total) == (2, 2)
        assert e.coverage.by_count == e.coverage.by_time == 1.0
        assert e.guard_count == sum(g.count for g in e.guard_groups) > 2
        assert e.guard_nanoseconds > 0
        assert set(e.phases) == set(records.PHASES)
        assert abs(e.compile_seconds - sum(e.phases.values())) < 1e-12
        assert 0 < e.phases["trace"] < 60


def test_no_arguments():
    assert framegraft.explain(lambda: torch.ones(2) + 1)().op_count == 2


@pytest.mark.own_code  # counts graphs behind breaks
def test_breaks_tell_where_and_what_to_do():
    e = framegraft.explain(breaking, X, X)
    assert e.graph_break_count == len(e.breaks) == len(e.break_reasons) == 1
    outer = e.breaks[0]
    assert outer.reason == "tensor_item"
    assert [name for _, _, name in outer.stack] == ["breaking", "helper"]
    carets = ["    ^^^^^^^^^"] if hasattr(breaking.__code__, "co_positions") else []  # CPython 3.10 knows lines only
    assert outer.source[0] == ["y = helper(x) + 1", *carets]
    assert outer.why and outer.hint
    assert 0 < e.coverage.by_count < 1 and e.coverage.captured == e.op_count
    text = str(e)
    for part in ("tensor_item", "y = helper(x) + 1", *carets, outer.hint, "test_explain.py", "L['a']", "trace"):
        assert part in text, text
    assert "\x1b[" not in text


def test_prints_colours_where_there_are_any():
    out = io.StringIO()
    framegraft.explain(breaking, X, X).print(Console(file=out, force_terminal=True, width=100, color_system="standard"))
    assert "\x1b[" in out.getvalue() and "tensor_item" in out.getvalue()


def test_modules_methods_and_compiled_functions():
    model = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.ReLU())
    assert torch.equal(framegraft.explain(model, X).result, model(X))
    assert framegraft.explain(framegraft.compile(model, backend="eager"), X).graph_count == 1
    assert framegraft.explain(model.forward, X).graph_count == 1
    compiled = framegraft.compile(whole, backend="eager")
    compiled(X)
    before = len(_native.cache_entries(whole.__code__))
    assert framegraft.explain(compiled, X).graph_count == 1
    assert len(_native.cache_entries(whole.__code__)) == before
    assert framegraft.stats()["graphs"] == len(records.CAPTURES) == 1


def test_nothing_is_left_behind():
    framegraft.explain(breaking, X, X)
    assert not records.CAPTURES and not records.BREAKS and not framegraft.events.listeners()
    assert framegraft.stats() == {"graphs": 0, "graph_ops": 0, "graph_breaks": 0}
    assert not _native.cache_entries(breaking.__code__)


def test_an_error_comes_through():
    def failing(x):
        return torch.relu(x) + helper(x) + {}["missing"]

    with pytest.raises(KeyError, match="missing"):
        framegraft.explain(failing, X)
    assert not framegraft.events.listeners()
    assert framegraft.explain(whole, X).coverage.total == 2


def test_beside_a_profiler_of_the_user():
    with torch.autograd.profiler_legacy.profile() as profile:
        assert framegraft.explain(whole, X).coverage is None
    assert "aten::relu" in [event.name for event in profile.function_events]


def test_a_backward_pass_is_not_counted():
    def step(x):
        return whole(x).sum()

    x = X.clone().requires_grad_()

    def train(x):
        loss = step(x)
        loss.backward()
        return loss

    e = framegraft.explain(train, x)
    assert e.coverage.captured == 3
    assert e.coverage.total <= 4  # backward() makes the first gradient itself
    assert torch.equal(x.grad, (X > 0).float())


def test_status_tells_of_recompiles():
    compiled = framegraft.compile(breaking, backend="eager")
    for n in (3, 4):
        compiled(torch.ones(n), torch.ones(n))
    s = framegraft.status()
    assert s.coverage is None and s.guard_nanoseconds is None
    assert s.graph_count == framegraft.stats()["graphs"] == len(s.graphs)
    assert s.op_count == framegraft.stats()["graph_ops"]
    assert s.break_reasons == framegraft.break_reasons()
    first = s.recompiles[0]
    assert (first.name, first.was, first.now) == ("breaking", "size=[3]", "size=[4]")
    assert first.cause.endswith(f":{breaking.__code__.co_firstlineno + 1}")
    assert s.captures[first.parent].name == "breaking"
    assert "size=[4]" in str(s) and "2 times" in str(s)


def test_was_and_is_of_other_guards():
    from framegraft.tools.details import Collector, recompilation

    settings = {"mode": "relu", "n": 2}

    def f(x):
        return getattr(torch, settings["mode"])(x) * settings["n"]

    compiled = framegraft.compile(f, backend="eager")
    with Collector() as collector:
        compiled(X)
        settings["mode"] = "tanh"
        compiled(X)
        settings["n"] = 3
        compiled(X)
        compiled(X.double())
    found = [recompilation(c, collector) for c in collector.captures]
    assert found[0] is None
    assert [(r.was, r.now) for r in found[1:3]] == [("'relu'", "'tanh'"), ("2", "3")]
    assert ("torch.float32", "torch.float64") == (found[3].was, found[3].now)


def test_functions_left_in_eager_mode_are_told():
    def peeks(x):
        return x + len(locals())

    framegraft.compile(peeks, backend="eager")(X)
    s = framegraft.status()
    assert s.captures[0].outcome == "eager" and s.breaks[0].reason == "introspection"
    assert "eager mode" in str(s)


def test_status_keeps_nothing_alive():
    model = torch.nn.Linear(5, 2)
    framegraft.compile(model, backend="eager")(X)
    dead = weakref.ref(model)
    del model
    import gc

    gc.collect()
    assert dead() is None
    assert framegraft.status().graph_count == 1


def test_nothing_empty_to_tell():
    assert str(framegraft.status()).startswith("0 graphs, 0 operations, 0 graph breaks")


def test_rich_is_loaded_late():
    import subprocess

    program = "import sys, framegraft; assert 'rich' not in sys.modules; framegraft.status(); assert 'rich' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
