"""Graphs that AOTAutograd gets in parts: what eager mode's autograd keeps apart, and recurrent layers."""

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import framegraft

BACKENDS = ["aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, pytest.mark.inductor])]


def mlp(*sizes):
    return nn.Sequential(nn.Linear(sizes[0], sizes[1]), nn.ReLU(), nn.Linear(sizes[1], sizes[2]))


def adversarial(wrap):
    """One function: the discriminator's loss and the generator's, through graphs that share ``fake``."""
    torch.manual_seed(0)
    generator, discriminator = mlp(2, 8, 4), mlp(4, 8, 1)
    first = torch.optim.Adam(generator.parameters(), 1e-2)
    second = torch.optim.Adam(discriminator.parameters(), 1e-2)

    def step(real, z):
        second.zero_grad()
        fake = generator(z)
        loss = F.softplus(-discriminator(real)).mean() + F.softplus(discriminator(fake.detach())).mean()
        loss.backward()
        second.step()
        untouched = all(p.grad is None for p in generator.parameters())
        first.zero_grad()
        other = F.softplus(-discriminator(fake)).mean()
        other.backward()
        first.step()
        return loss.detach(), other.detach(), untouched

    run = wrap(step)
    losses = [run(torch.randn(n, 4), torch.randn(n, 2)) for n in (6, 6, 5, 4)]
    return losses, [p.detach().clone() for m in (generator, discriminator) for p in m.parameters()]


@pytest.mark.parametrize("backend", BACKENDS)
def test_adversarial_step(backend):
    got = adversarial(lambda f: framegraft.compile(f, backend=backend))
    torch.testing.assert_close(got, adversarial(lambda f: f), rtol=1e-3, atol=1e-4)


def that_share_nothing(a, b, x):
    return a(x).sin().sum(), b(x).cos().sum()


def with_a_draw_in_place(a, b, x):
    first = a(x) * torch.empty(2, 3).normal_()
    return first.sin().sum(), b(first.detach()).cos().sum()


def with_a_switch(a, b, x):
    first = a(x).sin().sum()
    with torch.no_grad():
        shift = a(x).mean()
    return first, (b(x) + shift).cos().sum()


def in_turns(a, b, x):
    first = second = x
    for _ in range(6):
        first, second = a(first).sin(), b(second).cos()
    return first.sum(), second.sum()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("losses", [that_share_nothing, with_a_draw_in_place, with_a_switch, in_turns], ids=lambda f: f.__name__)
def test_losses_are_kept_apart_whatever_lies_between_them(losses, backend):
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    compiled = framegraft.compile(losses, backend=backend, fullgraph=True)
    x = torch.randn(2, 3)
    results = []
    for fn in (losses, compiled):
        a.zero_grad()
        b.zero_grad()
        torch.manual_seed(0)
        first, second = fn(a, b, x)
        first.backward()
        seen = [b.weight.grad is None]
        second.backward()
        results.append((seen, a.weight.grad.clone(), b.weight.grad.clone()))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_with_running_statistics_and_dropout(backend):
    """What draws random numbers or writes stays in order."""
    def train(wrap):
        torch.manual_seed(0)
        one = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        two = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))

        def f(x):
            h = one(x)
            return h.square().sum(), two(h.detach()).square().sum()

        run = wrap(f)
        values = []
        for _ in range(3):
            first, second = run(torch.randn(6, 3))
            first.backward()
            second.backward()
            values.append((first.detach(), second.detach()))
        return values, [t.clone() for m in (one, two) for t in m.state_dict().values()], [p.grad for p in one.parameters()]

    got = train(lambda f: framegraft.compile(f, backend=backend))
    if backend == "aot_eager":
        torch.testing.assert_close(got, train(lambda f: f), rtol=1e-4, atol=1e-5)


LAYERS = {
    "lstm": lambda: nn.LSTM(3, 5),
    "lstm of two layers": lambda: nn.LSTM(3, 5, 2, bidirectional=True),
    "gru": lambda: nn.GRU(3, 5),
    "rnn": lambda: nn.RNN(3, 5, nonlinearity="relu"),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("around", ["nothing", "layers", "autocast off"])
def test_recurrent_layers_train(name, backend, around):
    torch.manual_seed(0)
    layer, before = LAYERS[name](), nn.Linear(3, 3)

    def f(x):
        if around == "nothing":
            return layer(x)[0]
        with torch.autocast("cpu", enabled=False) if around == "autocast off" else torch.enable_grad():
            out, hidden = layer(before(x) if around == "layers" else x)
        return out.tanh().sum() + (hidden[0] if isinstance(hidden, tuple) else hidden).sum()

    compiled = framegraft.compile(f, backend=backend, fullgraph=True)
    results = []
    for fn in (f, compiled):
        torch.manual_seed(1)
        values = []
        for length, batch in ((4, 2), (4, 2), (6, 2), (6, 3)):
            layer.zero_grad()
            out = fn(torch.randn(length, batch, 3)).sum()
            out.backward()
            values.append((out.detach(), [p.grad.clone() for p in layer.parameters()]))
        results.append(values)
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("repeatable", [True, False])
def test_backward_compiled_late_for_one_size(repeatable):
    """AOTAutograd compiles a backward pass without symbols among what it saved when it first runs; no guard holds what it assumes."""
    from framegraft.backends.aot import aot_eager

    running, compiled_in_backward = [], []

    def for_one_size(gm, inputs):
        rows = int(inputs[0].shape[0])
        compiled_in_backward.append(bool(running))

        def run(args):
            given = [a for a in args if isinstance(a, torch.Tensor) and a.dim() == 2]
            right = all(a.shape[0] == rows for a in given)
            args, outs = list(args), gm(*args)
            return outs if right else [o * 0 if isinstance(o, torch.Tensor) else o for o in outs]

        run._boxed_call = True
        return run

    def fn(x, w, state):
        if not repeatable:
            state.add_(1)
        return (x.sin() * w).tanh()

    def steps(fn):
        for rows in (6, 6, 4, 7) if repeatable else (5, 4, 7):  # the first forward pass had 5
            torch.manual_seed(rows)
            x, w = torch.randn(rows, 3, requires_grad=True), torch.randn(rows, 3, requires_grad=True)
            out = fn(x, w, torch.zeros(2))
            running.append(1)
            out.sum().backward()
            running.clear()
            yield x.grad, w.grad

    compiled = framegraft.compile(
        fn, backend=lambda gm, inputs: aot_eager(gm, inputs, bw_compiler=for_one_size), dynamic=True)
    forward_only = torch.randn(5, 3, requires_grad=True)
    compiled(forward_only, forward_only.detach().clone(), torch.zeros(2))
    torch.testing.assert_close(list(steps(compiled)), list(steps(fn)), rtol=0, atol=0)
    assert any(compiled_in_backward)


@pytest.mark.parametrize("backend", BACKENDS)
def test_inference_tensor_beside_parameters(backend):
    weight = nn.Parameter(torch.ones(2))
    with torch.inference_mode():
        given = torch.ones(2)

    def fn(x):
        return (x + weight).sin()

    gradients = []
    for call in (fn, framegraft.compile(fn, backend=backend)):
        call(given).sum().backward()
        gradients.append(weight.grad)
        weight.grad = None
    torch.testing.assert_close(*gradients)


def gradient_of_an_output(model, x):
    hidden = model(x).tanh()
    first, second = hidden.chunk(2)
    loss = (first * second).square().sum()
    return torch.autograd.grad(loss, [hidden, first], allow_unused=True, retain_graph=True), torch.autograd.grad(loss, second)


def kept_gradient_of_an_output(model, x):
    hidden = model(x).tanh()
    inner = hidden[0].sin()
    loss = (hidden * inner).sum()
    inner.retain_grad()
    loss.backward(inputs=[hidden, model.weight])
    return hidden.grad, inner.grad, model.weight.grad


def gradient_of_a_leaf_made_inside(model, x):
    leaf = torch.ones(2, 3, requires_grad=True)
    with torch.no_grad():
        model(x)
    loss = model(leaf).square().sum()
    slope, = torch.autograd.grad(loss, leaf)
    return slope, leaf.is_leaf, leaf.requires_grad


@pytest.mark.parametrize("f", [gradient_of_an_output, kept_gradient_of_an_output, gradient_of_a_leaf_made_inside], ids=lambda f: f.__name__)
def test_gradients_of_what_other_outputs_depend_on(f):
    model, x = nn.Linear(3, 3), torch.randn(2, 3)
    results = []
    for fn in (f, framegraft.compile(f, backend="aot_eager")):
        model.zero_grad()
        results.append(fn(model, x))
    torch.testing.assert_close(*results)


def test_hooks_and_gradients_of_what_a_compiled_module_returns():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            hidden = self.first(x).tanh()
            return hidden, self.second(hidden)

    model, x = Two(), torch.randn(2, 3)
    results = []
    for run in (model, framegraft.compile(model, backend="aot_eager", fullgraph=True)):
        model.zero_grad()
        hidden, out = run(x)
        hidden.retain_grad()
        seen = []
        hidden.register_hook(lambda grad, seen=seen: seen.append(grad) or grad * 2)
        out.square().sum().backward()
        results.append((hidden.grad, seen, [p.grad for p in model.parameters()]))
    torch.testing.assert_close(*results)
