"""Optimizer steps in one graph, with eager's parameters and state bit for bit where the backend runs the operations as they are."""

import copy
import gc
import weakref

import pytest
import torch
import torch.nn as nn
from torch import optim

import framegraft

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "sgd momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "sgd nesterov maximize": lambda p: optim.SGD(p, lr=0.1, momentum=0.5, nesterov=True, maximize=True),
    "sgd foreach": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "sgd fused": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "adam amsgrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "adam foreach": lambda p: optim.Adam(p, lr=0.01, foreach=True),
    "adam fused": lambda p: optim.Adam(p, lr=0.01, fused=True),
    "adam lr tensor": lambda p: optim.Adam(p, lr=torch.tensor(0.01)),
    "adamw": lambda p: optim.AdamW(p, lr=0.01),
    "adamw foreach": lambda p: optim.AdamW(p, lr=0.01, foreach=True, amsgrad=True),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5),
    "rmsprop foreach": lambda p: optim.RMSprop(p, lr=0.01, foreach=True, centered=True),
    "adagrad": lambda p: optim.Adagrad(p),
    "adadelta foreach": lambda p: optim.Adadelta(p, foreach=True),
    "adamax": lambda p: optim.Adamax(p),
    "nadam": lambda p: optim.NAdam(p),
    "nadam foreach": lambda p: optim.NAdam(p, foreach=True, weight_decay=0.1),
    "groups": lambda p: optim.SGD([{"params": p[:2], "lr": 0.1}, {"params": p[2:], "lr": 0.2, "momentum": 0.5}]),
}


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))


def state_of(model, optimizer):
    return [p.detach().clone() for p in model.parameters()], copy.deepcopy(optimizer.state_dict()["state"])


def steps(make, wrap, count=5, each=lambda i, model, optimizer: None):
    model = net()
    optimizer = make(list(model.parameters()))
    step = wrap(optimizer.step)
    seen = []
    for i in range(count):
        each(i, model, optimizer)
        optimizer.zero_grad()
        model(torch.randn(3, 4)).square().mean().backward()
        step()
        seen.append(state_of(model, optimizer))
    return seen


def differ(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_step_is_one_graph(name):
    counter = framegraft.testing.CompileCounter()
    got = steps(OPTIMIZERS[name], lambda f: framegraft.compile(f, backend=counter))
    differ(got, steps(OPTIMIZERS[name], lambda f: f))
    # one that makes the state, one that uses it
    assert counter.frame_count <= 2
    assert not framegraft.break_reasons()


@pytest.mark.parametrize("make", [optim.ASGD, optim.RAdam, optim.NAdam])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_steps_with_breaks_and_complex_numbers(make, dtype):
    def run(wrap):
        torch.manual_seed(0)
        params = [nn.Parameter(torch.randn(2, 3, dtype=dtype)), nn.Parameter(torch.randn(3, dtype=dtype))]
        optimizer = make(params, weight_decay=0.1)
        step = wrap(optimizer.step)
        for _ in range(3):
            for p in params:
                p.grad = torch.randn_like(p)
            step()
        return [p.detach() for p in params], optimizer.state_dict()["state"]

    with framegraft.config.patch(raise_internal_errors=True):
        differ(run(lambda f: framegraft.compile(f, backend="eager")), run(lambda f: f))


@pytest.mark.parametrize("name", ["sgd momentum", "sgd fused", "adam", "adam fused", "adamw foreach"])
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiled_step(name, backend):
    got = steps(OPTIMIZERS[name], lambda f: framegraft.compile(f, backend=backend))
    torch.testing.assert_close(got, steps(OPTIMIZERS[name], lambda f: f), rtol=1e-4, atol=1e-5)


def test_fullgraph():
    got = steps(OPTIMIZERS["adam"], lambda f: framegraft.compile(lambda: f(), backend="eager", fullgraph=True))
    differ(got, steps(OPTIMIZERS["adam"], lambda f: f))


def frozen(i, model, optimizer):
    model[0].weight.requires_grad_(i % 2 == 0)


def state_lost(i, model, optimizer):
    if i == 2:
        optimizer.state.clear()


def state_loaded(i, model, optimizer):
    if i == 3:
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def parameter_added(i, model, optimizer):
    if i == 2:
        model.append(nn.Linear(2, 2))
        optimizer.add_param_group({"params": list(model[3].parameters()), "lr": 0.3})


def settings_changed(i, model, optimizer):
    optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
    optimizer.param_groups[0]["weight_decay"] = 0.1 * (i > 2)


def data_replaced(i, model, optimizer):
    model[0].weight.data = model[0].weight.data * 2


def zero_second(opt, args, kwargs):
    with torch.no_grad():
        opt.param_groups[0]["params"][1].zero_()


def hooks(i, model, optimizer):
    if i == 1:
        optimizer.register_step_pre_hook(zero_second)
    if i == 3:
        optimizer.register_step_post_hook(lambda opt, args, kwargs: opt.param_groups[0].update(lr=0.5))


CHANGES = [frozen, state_lost, state_loaded, parameter_added, settings_changed, data_replaced, hooks]


@pytest.mark.parametrize("name", ["sgd momentum", "adam foreach"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_what_changes_between_steps(change, name):
    got = steps(OPTIMIZERS[name], lambda f: framegraft.compile(f, backend="eager"), each=change)
    torch.testing.assert_close(got, steps(OPTIMIZERS[name], lambda f: f, each=change), rtol=1e-6, atol=1e-6)


def test_two_optimizers_share_the_code_not_the_state():
    def both(wrap):
        models = [net(), net()]
        optimizers = [optim.Adam(models[0].parameters(), lr=0.1), optim.Adam(models[1].parameters(), lr=0.2)]
        runs = [wrap(o.step) for o in optimizers]
        for _ in range(3):
            for model, step in zip(models, runs):
                model(torch.ones(2, 4)).sum().backward()
                step()
        return [state_of(m, o) for m, o in zip(models, optimizers)]

    differ(both(lambda f: framegraft.compile(f, backend="eager")), both(lambda f: f))


def test_models_are_freed():
    model = net()
    optimizer = optim.Adam(model.parameters())
    step = framegraft.compile(optimizer.step, backend="eager")
    for _ in range(3):
        model(torch.ones(2, 4)).sum().backward()
        step()
    alive = [weakref.ref(p) for p in model.parameters()] + [weakref.ref(optimizer)]
    del model, optimizer, step
    gc.collect()
    assert [r() for r in alive] == [None] * len(alive)


def test_zero_grad_and_clipping():
    def train(wrap):
        model = net()
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        kept = []

        def finish():
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            nn.utils.clip_grad_value_(model.parameters(), 0.05)
            optimizer.step()
            kept.append([p.grad.clone() for p in model.parameters()])
            optimizer.zero_grad()
            return norm

        run = wrap(finish)
        norms = []
        for i in range(4):
            for _ in range(1 + i % 2):  # gradients add up
                model(torch.randn(3, 4)).square().sum().backward()
            norms.append(run())
            assert all(p.grad is None for p in model.parameters())
        return norms, kept, state_of(model, optimizer)

    torch.manual_seed(0)
    got = train(lambda f: framegraft.compile(f, backend="eager"))
    torch.manual_seed(0)
    torch.testing.assert_close(got, train(lambda f: f), rtol=1e-6, atol=1e-6)


def test_gradient_read_and_set():
    def f(w, x):
        before = w.grad
        if before is not None:
            w.grad = before * 2 + x
        else:
            w.grad = x + 1
        return w.grad + 1, before is None

    compiled = framegraft.compile(f, backend="eager")
    runs = []
    for fn in (compiled, f):
        w = torch.ones(3, requires_grad=True)
        outs = [fn(w, torch.full((3,), float(i))) for i in range(3)]
        w.grad = None
        outs.append(fn(w, torch.zeros(3)))
        runs.append((outs, w.grad))
    assert framegraft.testing.same(*runs)


@pytest.mark.parametrize("value", [1.0, "x", torch.ones(2), torch.ones(3, dtype=torch.float64)], ids=repr)
def test_gradient_that_does_not_fit(value):
    def f(w, value):
        w.grad = value
        return w * 2

    def outcome(fn):
        w = torch.ones(3, requires_grad=True)
        try:
            return fn(w, value), w.grad
        except (TypeError, RuntimeError) as error:
            return type(error).__name__, str(error), w.grad

    assert framegraft.testing.same(outcome(framegraft.compile(f, backend="eager")), outcome(f))


@pytest.mark.own_code  # looks at the reasons behind breaks
def test_a_whole_step_breaks_at_backward_only():
    model = net()
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)  # wraps optimizer.step

    def step(x):
        optimizer.zero_grad(set_to_none=False)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    compiled = framegraft.compile(step, backend="eager")
    for _ in range(4):
        compiled(torch.randn(3, 4))
        scheduler.step()
    reasons = framegraft.break_reasons()
    assert all(reason.startswith("autograd_in_trace: Tensor.backward") for reason in reasons), reasons


def test_lbfgs_bit_for_bit():
    """Its updates have a tensor as alpha: kernels multiply and add with one rounding."""
    def train(wrap):
        model = net()
        optimizer = optim.LBFGS(model.parameters(), lr=0.5, max_iter=3)
        x, y = torch.randn(8, 4), torch.randn(8, 2)

        def closure():
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        step = wrap(lambda: optimizer.step(closure))
        return [step().detach() for _ in range(3)], state_of(model, optimizer)[0]

    torch.manual_seed(0)
    got = train(lambda f: framegraft.compile(f, backend="eager"))
    torch.manual_seed(0)
    differ(got, train(lambda f: f))


@pytest.mark.parametrize("name", ["sgd momentum", "sgd foreach", "adam", "adamw foreach", "rmsprop", "nadam"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, pytest.mark.inductor])])
def test_a_rate_that_changes_with_each_step_costs_no_captures(name, backend):
    def train(wrap):
        model = net()
        optimizer = OPTIMIZERS[name](list(model.parameters()))
        scheduler = optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)  # changes rate and momentum
        step = wrap(optimizer.step)
        torch.manual_seed(0)
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.randn(3, 4)).square().mean().backward()
            step()
            scheduler.step()
        return state_of(model, optimizer)

    counter = framegraft.testing.CompileCounterWithBackend(backend)
    got = train(lambda f: framegraft.compile(f, backend=counter))
    exact = backend == "eager" and name != "nadam"
    torch.testing.assert_close(got, train(lambda f: f), rtol=0 if exact else 1e-4, atol=0 if exact else 1e-6)
    assert framegraft.stats()["graphs"] <= 3


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, pytest.mark.inductor])])
def test_a_rate_that_is_a_tensor(backend, foreach):
    """SGD gives it to ``add_`` as its alpha; behind compilers that trace, it is multiplied first."""
    def train(wrap):
        torch.manual_seed(0)
        model = net()
        for p in model.parameters():
            p.grad = torch.randn_like(p)
        optimizer = optim.SGD(model.parameters(), lr=torch.tensor(0.37), foreach=foreach)
        step = wrap(optimizer.step)
        for _ in range(3):
            step()
            optimizer.param_groups[0]["lr"].mul_(0.9)
        return state_of(model, optimizer)[0]

    framegraft.reset()
    got = train(lambda f: framegraft.compile(f, backend=backend, fullgraph=True))
    assert len(framegraft.status().graphs) == 1
    expected = train(lambda f: f)
    if backend == "eager" and not foreach:
        differ(got, expected)
    torch.testing.assert_close(got, expected)
