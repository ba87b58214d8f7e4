"""What a run of the guards hands on: to quick code, to a graph that is called straight from C, and to a rescue."""

import gc
import sys
import traceback
import weakref

import pytest
import torch

import framegraft
from framegraft import _native
from framegraft.emit.rescue import Plan, run_eager

from .build import ALWAYS, Compiled, fresh, growth, node, positional


class Box:
    def __init__(self, value):
        self.value = value


def handing(guards, inputs):
    return _native.GuardProgram([(p, a, arg, [(k, v, i) for i, (k, v) in enumerate(checks)]) for p, a, arg, checks in guards], inputs)


def attribute_of_argument():
    """Node 2 is box.__dict__["value"]."""
    return handing([node("ARG", 0, ("TYPE", Box)), node("DICT", None, parent=0), node("KEY", "value", ("PRESENT", None), parent=1)], (2,))


def calls(box):
    return "plain"


def quick_calls(box, given):
    return "quick", given


@pytest.mark.parametrize("width", [1, 5, 6, 7, 300])
def test_quick_code_gets_the_objects_that_the_guards_met(width):
    guards = [node("ARG", 0, ("TYPE", list))] + [node("ITEM", i, ("PRESENT", None), parent=0) for i in range(width)]
    names = [f"i{i}" for i in range(width)]
    scope = {}
    exec(f"def quick(box, {', '.join(names)}): return [{', '.join(names)}]", scope)
    made = Compiled(fresh(calls))
    items = [object() for _ in range(width)]
    entry = made.entry(guards=handing(guards, tuple(range(1, width + 1))), quick=positional(scope["quick"]))
    _native.add_entry(made.fn.__code__, entry)
    for _ in range(3):
        assert all(a is b for a, b in zip(made.call(items), items, strict=True))
    items[0] = object()
    assert made.call(items)[0] is items[0]
    assert not made.misses
    counts = [sys.getrefcount(i) for i in items]
    assert growth(lambda: made.call(items), 300) < 50
    assert counts == [sys.getrefcount(i) for i in items]


def test_an_attribute_that_changes():
    made = Compiled(fresh(calls))
    _native.add_entry(made.fn.__code__, made.entry(guards=attribute_of_argument(), quick=positional(quick_calls)))
    box = Box(1)
    for value in (1, 2, "x", None):
        box.value = value
        assert made.call(box) == ("quick", value)
        assert made.call(box) == ("quick", value)
    other = Box([])
    assert made.call(other)[1] is other.value
    del box.value
    assert made.call(box) == "plain" and len(made.misses) == 1


def test_a_guard_that_takes_the_input_away():
    """The object met stays alive until the code has run, whatever a guard in Python does."""
    box = Box(Box(7))

    def guard(value):
        box.value = None
        gc.collect()
        return True

    inner = weakref.ref(box.value)
    guards = handing([node("ARG", 0, ("TYPE", Box)), node("DICT", None, parent=0), node("KEY", "value", ("PRESENT", None), parent=1),
                      node("ARG", 0, ("PY", guard))], (2,))
    made = Compiled(fresh(calls))
    _native.add_entry(made.fn.__code__, made.entry(guards=guards, quick=positional(quick_calls)))
    for _ in range(3):
        assert made.call(box)[1].value == 7
        assert inner() is None
        box.value = Box(7)
        inner = weakref.ref(box.value)


def test_an_input_that_no_guard_proves():
    made = Compiled(fresh(calls))
    guards = handing([node("ARG", 0), node("DICT", None, parent=0), node("KEY", "missing", parent=1)], (2,))
    _native.add_entry(made.fn.__code__, made.entry(guards=guards, quick=positional(quick_calls)))
    for _ in range(3):
        with pytest.raises(SystemError, match="no guard proves"):
            made.call(Box(1))


def forwarding(graph, guards=None, rescue=None):
    made = Compiled(fresh(calls))
    _native.add_entry(made.fn.__code__, made.entry(guards=guards or attribute_of_argument(), graph=graph, rescue=rescue))
    return made.call


class Keeper:
    def method(self, value):
        return (value, self)[:1]


@pytest.mark.parametrize("graph", [lambda v: (v,), lambda v: [v], lambda v: iter((v,)), Keeper().method, _native.Shielded(lambda v: (v,))])
def test_graph(graph):
    call = forwarding(graph)
    for value in (1, Box(2)):
        assert call(Box(value)) is value
        assert call(Box(value)) is value
    box = Box(0)
    assert growth(lambda: call(box), 1000) < 50


@pytest.mark.parametrize("graph", [lambda v: (), lambda v: (1, 2), lambda v: [1, 2], lambda v: iter(()), lambda v: 5, lambda: (1,)])
def test_graph_that_returns_something_else(graph):
    call = forwarding(graph)
    for _ in range(3):
        with pytest.raises((ValueError, TypeError)):
            call(Box(1))


def test_graph_that_fails():
    def graph(value):
        raise KeyError(value)

    call = forwarding(graph)
    for _ in range(3):
        with pytest.raises(KeyError) as caught:
            call(Box(1))
        names = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
        assert names[1:] == ["graph"]  # the frame between is added by the entry's info, which there is none of here
    box = Box(1)

    def fail():
        try:
            call(box)
        except KeyError:
            pass

    assert growth(fail, 1000) < 50


def test_rescue():
    asked = []

    def graph(value):
        raise KeyError(value)

    def save(error, plan, closure, *args):
        asked.append((type(error), error.__traceback__ is not None, plan, closure, args))
        return "saved"

    call = forwarding(graph, rescue=(save, "plan"))
    box = Box(1)
    assert call(box) == "saved"
    assert asked == [(KeyError, True, "plan", (), (box,))]
    assert growth(lambda: (call(box), asked.clear()), 1000) < 50

    def refuse(error, plan, closure, *args):
        raise error

    with pytest.raises(KeyError, match="1"):
        forwarding(graph, rescue=(refuse, None))(box)


def test_rescue_runs_the_frame_with_its_closure():
    factor = 3

    def body(box):
        return box.value * factor

    made = Compiled(body)

    def graph(value):
        raise ValueError

    plan = Plan(body.__code__, globals(), True, type("Modes", (), {"restore": lambda self: None})())
    _native.add_entry(body.__code__, made.entry(guards=attribute_of_argument(), graph=graph, rescue=(run_eager, plan)))
    assert made.call(Box(2)) == 6


def test_wrong_use():
    made = Compiled(fresh(calls))
    for keywords in ({"quick": 5}, {"rescue": 5}, {"rescue": (1,)}):
        with pytest.raises(TypeError):
            made.entry(**keywords)
    for inputs in ((1,), (-1,), ("x",), (10**30,)):
        with pytest.raises((ValueError, TypeError, OverflowError)):
            _native.GuardProgram([(-1, "ARG", 0, [])], inputs)
    with pytest.raises(TypeError):
        _native.GuardProgram([], [0])
    with pytest.raises(TypeError):
        _native.Shielded(5)
    with pytest.raises(TypeError):
        _native.ModuleCall("a", 5)
    for args in ((), (5,), (Box(1),)):
        with pytest.raises(TypeError):
            _native.ModuleCall("a", "b")(*args)


def test_the_first_call_of_an_entry():
    """The guards are asked for the inputs; where they do not hold on the call that made them, the plain code runs."""
    made = Compiled(fresh(calls))
    call = _native.CompiledFunction(made.fn, made.ctx, lambda callee, args: made.entry(guards=attribute_of_argument(), quick=positional(quick_calls)))
    assert call(Box(1)) == ("quick", 1)
    assert call(5) == "plain"


def test_code_that_is_made_when_it_is_wanted():
    asked = []

    def later():
        asked.append(_native.get_mode()[0])
        return positional(calls)

    made = Compiled(fresh(calls))
    entry = _native.Entry(ALWAYS, later, globals(), made.ctx)
    _native.add_entry(made.fn.__code__, entry)
    assert asked == []
    assert made.call(1) == made.call(2) == "plain"
    assert asked == [2] and entry.code is entry.code and _native.is_skipped(entry.code)
    for wrong, error in ((lambda: 5, TypeError), (lambda: 1 / 0, ZeroDivisionError)):
        broken = _native.Entry(ALWAYS, wrong, globals(), made.ctx)
        with pytest.raises(error):
            broken.code
    with pytest.raises(TypeError):
        _native.Entry(ALWAYS, 5, globals(), made.ctx)


def test_shielded():
    seen = []
    shield = _native.Shielded(lambda *a, **k: seen.append((a, k, _native.get_mode()[0])))
    shield(1, x=2)
    old = _native.set_mode(1, object(), lambda *a: None)
    try:
        shield()
        assert _native.get_mode()[0] == 1
    finally:
        _native.set_mode(*old)
    assert seen == [((1,), {"x": 2}, 2), ((), {}, 2)]
    assert shield.__wrapped__ is not None
    weakref.ref(shield)


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("shift", torch.zeros(2))

    def forward(self, x):
        return x * self.weight + self.shift


def _data(model):
    model.weight.data = torch.full((2,), 5.0)


def _slots(model):
    model._parameters = dict(model._parameters, weight=torch.nn.Parameter(torch.full((2,), 4.0)))


CHANGES = [
    _data, _slots, lambda m: setattr(m, "weight", torch.nn.Parameter(torch.full((2,), 3.0))), lambda m: m.shift.add_(1),
    lambda m: setattr(m, "shift", torch.ones(2)), lambda m: m._buffers.update(shift=torch.full((2,), 2.0)),
    lambda m: m.load_state_dict({"weight": torch.full((2,), 7.0), "shift": torch.full((2,), 8.0)}, assign=True),
    lambda m: m.register_forward_hook(lambda mod, args, out: out * 2), lambda m: m.requires_grad_(False), lambda m: m.double().float(),
    lambda m: m.__dict__.update(_buffers={"shift": torch.full((2,), 6.0)}),
    lambda m: setattr(m, "forward", lambda x: x - 1), lambda m: m.weight.data.copy_(torch.full((2,), 9.0)),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("pair", [False, True])
def test_parameters_that_change(change, pair):
    model = Scaled()
    body = (lambda m, x: (m(x), x)) if pair else (lambda m, x: m(x))
    call = framegraft.compile(body, backend="eager")
    x = torch.arange(2.0)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(call(model, x), body(model, x))
        change(model)
        for _ in range(3):
            torch.testing.assert_close(call(model, x), body(model, x))
        other = Scaled()
        _data(other)
        torch.testing.assert_close(call(other, x), body(other, x))
        torch.testing.assert_close(call(model, x), body(model, x))


def test_compiled_modules_are_called_alike():
    model = torch.nn.Linear(2, 2)
    call = framegraft.compile(model, backend="eager")
    x = torch.ones(1, 2)
    for result in (call(x), call(input=x), call.__call__(x), type(call).__call__(call, x), call.forward(x)):
        assert torch.equal(result, model(x))
    with pytest.raises(TypeError):
        call()
    with pytest.raises(TypeError):
        call(x, nope=1)


def test_many_modules_do_not_share_a_limit():
    x = torch.ones(1, 2)
    with framegraft.config.patch(cache_size_limit=2):
        for _ in range(4):
            model = torch.nn.Linear(2, 2)
            graphs = framegraft.stats()["graphs"] if hasattr(framegraft, "stats") else 0
            call = framegraft.compile(model, backend="eager")
            assert torch.equal(call(x), model(x))
            assert not hasattr(framegraft, "stats") or framegraft.stats()["graphs"] == graphs + 1


def test_values_die_with_the_model():
    model = Scaled()
    call = framegraft.compile(model, backend="eager")
    call(torch.ones(2))
    call(torch.ones(2))
    alive = weakref.ref(model.weight)
    del model, call
    gc.collect()
    assert alive() is None
