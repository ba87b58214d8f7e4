"""Names in the program's globals, and what a captured function keeps alive."""

import gc
import weakref

import pytest
import torch
import torch.nn as nn

import framegraft

X = torch.linspace(-1, 1, 4)


def ours(scope):
    return sorted(n for n in scope if n.startswith(("__compiled_fn", "__resume_at", "__fg")))


def fresh_names(before):
    return [n for n in ours(globals()) if n not in before]


def looping(v, n):
    for _ in range(n):
        if v.sum() > 100:
            return v
        v = v + 1
    return v.relu()


def test_reset_leaves_no_name_behind():
    before = ours(globals())
    compiled = framegraft.compile(looping, backend="eager")
    assert torch.equal(compiled(X, 3), looping(X, 3)) and torch.equal(compiled(X * 99, 3), looping(X * 99, 3))
    names = fresh_names(before)
    assert any("resume" in n for n in names) and any("compiled" in n for n in names)
    framegraft.reset()
    gc.collect()
    assert fresh_names(before) == []
    compiled(X, 3)
    assert "__compiled_fn_0" in fresh_names(before)


@pytest.mark.parametrize("forget", [framegraft.reset, lambda: framegraft.compile(lambda v: v * 5, backend="eager")(X)])
def test_running_frame_keeps_its_names(forget):
    def f(v, depth):
        w = v * 2
        calls.append(depth)
        if depth:
            w = w + compiled(v, depth - 1)
        else:
            framegraft.disable(forget)()
            other(v)
        if w.sum() > 1000:
            return w
        return w.sin() + 1

    def g(v):
        return (v.cos() * 3, print(end=""), v + 1)[0]

    calls = []
    compiled = framegraft.compile(f, backend="eager")
    other = framegraft.compile(g, backend="eager")
    for _ in range(2):
        got = compiled(X, 3)
        twin, compiled = compiled, f
        expected = f(X, 3)
        compiled = twin
        assert torch.equal(got, expected)
    assert calls == [3, 2, 1, 0] * 4


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        y = self.one(x)
        if y.sum() > 1000:
            return y
        return self.two(y).relu()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("wrapped", [False, True])
def test_model_can_die(backend, training, wrapped):
    model = Net()
    compiled = framegraft.compile(model if wrapped else lambda m, x: m(x), backend=backend)
    for _ in range(2):
        out = compiled(X) if wrapped else compiled(model, X)
        if training:
            out.sum().backward()
    alive = [weakref.ref(o) for o in (model, model.one, model.one.weight, model.two.bias)]
    del model, out
    if wrapped:
        del compiled
    gc.collect()
    assert [r() for r in alive] == [None] * 4


def test_arguments_can_die():
    class Box:
        pass

    def f(box, items, v):
        box.seen = items[0] + v
        print(end="")
        return box.seen * 2

    compiled = framegraft.compile(f, backend="eager")
    box, items, v = Box(), [torch.ones(4)], torch.ones(4)
    compiled(box, items, v)
    alive = [weakref.ref(o) for o in (box, items[0], v)]
    del box, items, v
    gc.collect()
    assert [r() for r in alive] == [None] * 3


def test_exception_leaves_nothing_behind():
    def f(v):
        w = v + 1
        raise ValueError(len(w))

    compiled = framegraft.compile(f, backend="eager")
    v = torch.ones(3)
    with pytest.raises(ValueError, match="3"):
        compiled(v)
    alive = weakref.ref(v)
    del v
    gc.collect()
    assert alive() is None
