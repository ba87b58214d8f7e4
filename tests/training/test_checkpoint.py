"""Activation checkpointing: what is saved, what is computed anew, and with the same random numbers."""

import collections

import pytest
import torch
import torch.nn as nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import framegraft


def saved_elements(fn):
    seen = []

    def pack(t):
        seen.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = fn()
    return out, sum(t.numel() for t in seen if t.numel() > 64)


def chain(x, w):
    for _ in range(6):
        x = (x @ w).sin().exp().tanh()
    return x


def test_region_is_computed_anew():
    w = torch.randn(16, 16, requires_grad=True)
    x = torch.randn(16, 16)
    plain = framegraft.compile(chain, backend="aot_eager", fullgraph=True)
    region = framegraft.compile(lambda x, w: checkpoint(chain, x, w, use_reentrant=False).cos(), backend="aot_eager", fullgraph=True)
    _, kept = saved_elements(lambda: plain(x, w))
    out, left = saved_elements(lambda: region(x, w))
    assert left < kept / 2
    expected = chain(x, w).cos()
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(torch.autograd.grad(out.sum(), w), torch.autograd.grad(expected.sum(), w))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("reentrant", [False, True])
def test_same_dropout_both_times(backend, reentrant):
    def f(x, w):
        return checkpoint(lambda x, w: torch.dropout(x * w, 0.5, True) * 2, x, w, use_reentrant=reentrant)

    w = torch.ones(64, requires_grad=True)
    x = torch.full((64,), 3.0, requires_grad=True)
    out = framegraft.compile(f, backend=backend)(x, w)
    out.sum().backward()
    assert set(out.tolist()) == {0.0, 12.0}
    torch.testing.assert_close(w.grad, out.detach())


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_region_with_a_break(backend):
    def body(x, w):
        y = (x * w).sin()
        print(end="")
        return (y * w).cos() * y

    def f(x, w):
        return checkpoint(body, x, w, use_reentrant=False) * 2

    grads = []
    compiled = framegraft.compile(f, backend=backend)
    for fn in (f, compiled, compiled):
        w = torch.linspace(0, 1, 8, requires_grad=True)
        out = fn(torch.ones(8), w)
        grads.append((out.detach(), *torch.autograd.grad(out.sum(), w)))
    torch.testing.assert_close(grads[1], grads[0])
    torch.testing.assert_close(grads[2], grads[0])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_captured_function_inside_an_eager_checkpoint(backend):
    model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4))
    compiled = framegraft.compile(model, backend=backend)
    x = torch.randn(3, 4)
    grads = []
    for fn in (model, compiled):
        model.zero_grad()
        checkpoint(fn, x, use_reentrant=False).square().sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    torch.testing.assert_close(*grads)


class Block(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.linear, self.drop = nn.Linear(4, 4), nn.Dropout(dropout)

    def forward(self, x, scale=None, pair=()):
        y = self.drop(self.linear(x).tanh())
        for extra in pair:
            y = y + extra
        return y if scale is None else y * scale


OUTSIDE = torch.linspace(1, 2, 4, requires_grad=True)
AROUND = [OUTSIDE]


def asks_for_mode(x):
    return x.sin() if torch.is_grad_enabled() else x.cos()


def asks_for_gradient(x):
    y = x.sin()
    return y.cos() if y.requires_grad else y.exp()


def two(x):
    return x.sin(), (x > 0), None, x.cos()


def with_no_grad(x):
    with torch.no_grad():
        mean = x.mean()
    return (x - mean).sin()


def uses_derived(x):
    return x * AROUND[0]


def twice_the_same(x):
    y = x.sin()
    return y, y


REENTRANT = {
    "plain": (lambda x, m: checkpoint(torch.sin, x, use_reentrant=True), True),
    "module": (lambda x, m: checkpoint(m, x * 2, use_reentrant=True), True),
    "method": (lambda x, m: checkpoint(m.__call__, x * 2, None, (torch.ones(4),), use_reentrant=True), True),
    "twice": (lambda x, m: checkpoint(m, checkpoint(m, x, use_reentrant=True), x, use_reentrant=True), True),
    "within": (lambda x, m: checkpoint(lambda t: checkpoint(m, t.sin(), use_reentrant=False).cos(), x, use_reentrant=True), True),
    "leaf": (lambda x, m: checkpoint(lambda t: t * OUTSIDE, x, use_reentrant=True), True),
    "several": (lambda x, m: checkpoint(two, x, use_reentrant=True)[::3], True),
    "no_grad": (lambda x, m: checkpoint(with_no_grad, x, use_reentrant=True), True),
    "mode": (lambda x, m: checkpoint(asks_for_mode, x, use_reentrant=True), False),
    "gradient": (lambda x, m: checkpoint(asks_for_gradient, x, use_reentrant=True), False),
    "derived": (lambda x, m: checkpoint(uses_derived, x, use_reentrant=True), False),
    "nothing": (lambda x, m: checkpoint(m, x.detach(), use_reentrant=True) + x, False),
    "detached": (lambda x, m: checkpoint(lambda t: t.detach() * m(t).sum().detach(), x, use_reentrant=True).sin() * x, False),
    "itself": (lambda x, m: checkpoint(lambda t: t, x * 2, use_reentrant=True), False),
    "view": (lambda x, m: checkpoint(lambda t: t.view(2, 2), x * 2, use_reentrant=True), False),
    "weight": (lambda x, m: checkpoint(lambda t: m.linear.weight.view(-1), x, use_reentrant=True), False),
    "same": (lambda x, m: checkpoint(twice_the_same, x, use_reentrant=True), False),
    "inner": (lambda x, m: checkpoint(lambda t: (t, [t])[0].sin() * m(t), (x * 2), use_reentrant=True), True),
}


@pytest.mark.filterwarnings("ignore:None of the inputs")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", REENTRANT)
def test_reentrant(name, backend):
    fn, whole = REENTRANT[name]
    seen = []
    for f in (fn, *[framegraft.compile(fn, backend=backend)] * 2):
        torch.manual_seed(0)
        module, x = Block(dropout=0.5), torch.linspace(-1, 1, 4, requires_grad=True)
        OUTSIDE.grad, AROUND[0] = None, OUTSIDE * 2
        framegraft.reset() if f is fn else None
        outs = f(x, module)
        outs = outs if isinstance(outs, tuple) else (outs,)
        try:
            sum(out.sum() for out in outs).backward()
        except RuntimeError as error:
            assert "second time" in str(error) or "none of output" in str(error) or "does not require grad" in str(error)
        values = (*outs, x.grad, *(p.grad for p in module.parameters()), OUTSIDE.grad)
        seen.append([v if v is None else (v.detach(), v.requires_grad) for v in values])
    seen = [repr(values) for values in seen]
    assert seen[1] == seen[0]
    assert seen[2] == seen[0]
    assert bool(framegraft.break_reasons()) != whole


def test_reentrant_without_gradients():
    module, x = Block(), torch.ones(4, requires_grad=True)
    with torch.no_grad():
        got = framegraft.compile(lambda x: checkpoint(module, x, use_reentrant=True), fullgraph=True, backend="eager")(x)
    assert torch.equal(got, module(x)) and not got.requires_grad


def test_keywords_and_what_breaks():
    def body(x, *, scale):
        return x.sin() * scale

    x = torch.ones(3, requires_grad=True)
    f = framegraft.compile(lambda x: checkpoint(body, x, use_reentrant=False, preserve_rng_state=False, scale=3), backend="eager", fullgraph=True)
    assert torch.equal(f(x), body(x, scale=3))
    g = framegraft.compile(lambda x: checkpoint(body, x, use_reentrant=True, scale=3), backend="eager")
    with pytest.raises(ValueError, match="scale"):
        g(x)


def marks_of(fn, *args):
    """(policy, number of the region) of each operation of the graph."""
    seen = []

    def backend(gm, inputs):
        regions = {}
        for node in gm.graph.nodes:
            if node.op == "call_function" or node.op == "call_method":
                region = node.meta.get("ac_graph_id")
                seen.append((node.meta.get("recompute"), None if region is None else regions.setdefault(region, len(regions))))
        return gm.forward

    framegraft.compile(fn, backend=backend, fullgraph=True)(*args)
    return seen


class Region(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return checkpoint(lambda x: self.linear(x).max(0)[0].relu(), x, use_reentrant=False).expand(4, 4)


def test_layers_that_repeat_an_earlier_one_are_regions_too():
    stack = nn.Sequential(*[Region() for _ in range(4)])
    marks = marks_of(stack, torch.ones(4, 4, requires_grad=True))
    in_regions = [mark for mark in marks if mark != (None, None)]
    assert {policy for policy, _ in in_regions} == {CheckpointPolicy.PREFER_RECOMPUTE}
    assert [sum(region == n for _, region in in_regions) for n in range(4)] == [len(in_regions) // 4] * 4


def test_policy_says_what_is_saved():
    def contexts():
        counts = collections.Counter()

        def policy(context, op, *args, **kwargs):
            counts[op] += 1
            return op == torch.ops.aten.mm.default and counts[op] % 2 == 1

        return create_selective_checkpoint_contexts(policy)

    def f(x):
        return checkpoint(lambda x: (x @ x @ x @ x).sin(), x, use_reentrant=False, context_fn=contexts)

    save, anew = CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_RECOMPUTE
    assert [policy for policy, _ in marks_of(f, torch.ones(4, 4, requires_grad=True))] == [save, anew, save, anew]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
def test_dropout_in_a_region_of_a_graph_without_gradients(mode):
    """Where no input requires one: torch looks for a backward pass in such a graph."""

    def f(x):
        with mode():
            return checkpoint(lambda y: nn.functional.dropout(y.sin(), 0.5).cos(), x, use_reentrant=False) + 1

    compiled, x = framegraft.compile(f, backend="aot_eager"), torch.ones(64)
    for seed in range(3):
        torch.manual_seed(seed)
        wanted = f(x)
        torch.manual_seed(seed)
        assert torch.equal(compiled(x), wanted)
