"""Modes of torch that the captured function itself enters: inference mode, default devices and dtypes, anomaly detection."""

import contextlib

import pytest
import torch

import framegraft

from .differential import differential


def one():
    return (torch.arange(3.0) + 1,)


def leaf():
    return ((torch.arange(3.0) + 1).requires_grad_(),)


@differential(one, graphs=1)
def test_inference_mode(x):
    a = x.sin()
    with torch.inference_mode():
        b = a * 2
        state = torch.is_inference_mode_enabled(), torch.is_grad_enabled(), b.is_inference()
    return b + 1, a, state, torch.is_inference_mode_enabled(), torch.is_grad_enabled()


@differential(leaf, graphs=1)
def test_inference_mode_and_gradients(x):
    y = x * 3
    with torch.inference_mode():
        z = y * 2
        with torch.inference_mode(False):
            inner = torch.ones(3) * 2
            fresh = inner.is_inference()
        with torch.enable_grad():
            w = y + 1
            state = torch.is_grad_enabled(), w.requires_grad
    return y * 2, z, w, inner, fresh, state, y.requires_grad, z.requires_grad


@differential(one, graphs=1)
def test_inference_mode_around_no_grad(x):
    with torch.no_grad(), torch.inference_mode():
        a = x + 1
        with torch.enable_grad():
            b = a * x
    with torch.inference_mode(), torch.no_grad():
        c = x * 2
        with torch.inference_mode():
            d = c + 1
    return a, b, c, d, torch.is_grad_enabled()


class Decorated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    @torch.inference_mode()
    def forward(self, x):
        return self.linear(x).relu()


@differential(build=True, make_inputs=one, graphs=1)
def test_decorated():
    torch.manual_seed(0)
    model = Decorated()
    return lambda x: (model(x), model.linear(x).detach())


@differential(leaf)
def test_inference_mode_left_by_an_error(x):
    try:
        with torch.inference_mode():
            y = x * 2
            raise ValueError("out")
    except ValueError:
        z = y + 1
    return y, z, torch.is_inference_mode_enabled()


@differential(leaf)
def test_inference_tensors_are_not_saved(x):
    with torch.inference_mode():
        y = x.detach() * 2
    try:
        return x * y
    except RuntimeError as error:
        return str(error)[:40], torch.is_inference_mode_enabled()


@differential(one)
def test_written_in_inference_mode(x):
    y = x + 1
    with torch.inference_mode():
        x.add_(1)
        view = x[0]
        y.mul_(2)
    view.add_(1)
    return x * 2, view, view.is_inference(), y._version


@differential(one)
def test_error_of_an_operation_in_inference_mode(x):
    try:
        with torch.inference_mode():
            y = x * 2
            z = y[torch.tensor([7])]
    except IndexError:
        z = y
    return z, torch.is_inference_mode_enabled()


@differential(one)
def test_inference_object_kept(x):
    mode = torch.inference_mode()
    with mode:
        a = x * 2
    with mode:
        b = x * 3
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        c = x + 1
    return a, b, c, mode.mode, torch.is_inference_mode_enabled()


@differential(one)
def test_entered_by_hand(x):
    mode = torch.inference_mode()
    mode.__enter__()
    a = x * 2
    mode.__exit__(None, None, None)
    return a, x + 1, torch.is_inference_mode_enabled()


MODE = torch.inference_mode()


@differential(one)
def test_inference_object_from_outside(x):
    with MODE:
        a = x * 2
    return a, x * 2


@differential(one, graphs=1)
def test_device_context(x):
    with torch.device("cpu"):
        a = torch.zeros(3) + x
        with torch.device("meta") as inner:
            b = torch.ones(2), torch.arange(3), torch.get_default_device()
            c = torch.zeros(2, device="cpu"), torch.zeros_like(x)
        d = torch.get_default_device()
    return a, [t.device for t in b[:2]], b[2], c, d, inner, torch.ones(2).device, torch.get_default_device()


@differential(one, graphs=1)
def test_device_of_a_module(x):
    with torch.device("meta"):
        weights = torch.nn.functional.one_hot(torch.tensor([1, 2], device="cpu"), 3)
        grid = torch.linspace(0, 1, 3)
    return x * weights, grid.device


@differential(one)
def test_device_context_left_by_an_error(x):
    try:
        with torch.device("meta"):
            raise ValueError
    except ValueError:
        y = torch.ones(3)
    return x + y, y.device


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_default_device_at_the_start(device):
    seen = []

    def backend(gm, inputs):
        seen.append(gm)
        return gm.forward

    def fn(x):
        return torch.ones(3), x * 2, torch.get_default_device(), torch.zeros(2, 1), torch.empty_like(x)

    x = torch.ones(3, device="cpu")
    compiled = framegraft.compile(fn, backend=backend, fullgraph=True)
    for default in (device, None, device, None):
        torch.set_default_device(default)
        try:
            want, got = fn(x), compiled(x)
            assert torch._C._len_torch_function_stack() == (default is not None)
        finally:
            torch.set_default_device(None)
        assert [str(getattr(v, "device", v)) for v in got] == [str(getattr(v, "device", v)) for v in want]
    assert len(seen) == 2


@differential(one)
def test_default_device_left_behind(x):
    torch.set_default_device("meta")
    a = torch.ones(2).device
    with torch.device("cpu"):
        b = torch.ones(2)
    torch.set_default_device(None)
    return a, b, x + torch.ones(3)


def test_default_device_stays():
    def fn(x):
        torch.set_default_device("meta")
        return x + 1

    x = torch.ones(3)
    try:
        framegraft.compile(fn, backend="eager", fullgraph=True)(x)
        assert torch.empty(1).device.type == "meta"
    finally:
        torch.set_default_device(None)


@differential(one)
def test_default_dtype(x):
    torch.set_default_dtype(torch.float64)
    a = torch.zeros(3), torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    return a, torch.zeros(3), x + a[0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_default_dtype_behind_a_backend(backend):
    def wide(x, n):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return x * torch.ones(3), n / 2
        finally:
            torch.set_default_dtype(before)

    inputs = torch.arange(3.0), torch.arange(3)
    for found, expected in zip(framegraft.compile(wide, backend=backend)(*inputs), wide(*inputs), strict=True):
        assert found.dtype is torch.float64 and torch.equal(found, expected)


@differential(leaf, graphs=1)
def test_anomaly_mode(x):
    before = torch.is_anomaly_enabled()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        y = (x * 2).sin()
        inside = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    return y, before, inside, torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


@differential(leaf, graphs=1)
def test_multithreading(x):
    with torch.autograd.set_multithreading_enabled(False):
        y = x * 2
    return y


def test_anomaly_mode_is_asked_again():
    def fn(x):
        return x + 1, torch.is_anomaly_enabled()

    compiled = framegraft.compile(fn, backend="eager")
    x = torch.ones(3)
    assert compiled(x)[1] is False
    with torch.autograd.set_detect_anomaly(True):
        assert compiled(x)[1] is True
    assert compiled(x)[1] is False


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_inference_mode_behind_aotautograd(backend):
    torch.manual_seed(0)
    model = Decorated()

    def fn(x):
        y = x * 2
        with torch.inference_mode():
            z = (y + 1).relu()
        return y.sin(), z, model(x)

    compiled = framegraft.compile(fn, backend=backend)
    for _ in range(2):
        x = torch.arange(3.0).requires_grad_()
        want, got = fn(x), compiled(x)
        for a, b in zip(want, got, strict=True):
            torch.testing.assert_close(b, a)
            assert b.is_inference() == a.is_inference() and b.requires_grad == a.requires_grad
        got[0].sum().backward()
        torch.testing.assert_close(x.grad, 2 * torch.cos(2 * x.detach()))
        assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()


def test_numbers_under_a_default_device():
    def fn(x, number):
        return x * number + 1

    compiled = framegraft.compile(fn, backend="eager")
    x = torch.ones(2)
    torch.set_default_device("meta")
    try:
        for number in (0.5, 1.5, 2.5, 3.5):
            assert torch.equal(compiled(x, number), fn(x, number))
    finally:
        torch.set_default_device(None)


def fails_without_setting_anything(x, index):
    with torch.no_grad():
        y = x * 2
    return torch.index_select(y + x, 0, index)


def test_graph_that_fails_leaves_switches_alone():
    """What was captured under other settings that it never asked for."""
    compiled = framegraft.compile(fails_without_setting_anything, backend="eager")
    x = torch.ones(3)
    compiled(x, torch.tensor([1]))
    flash = torch.backends.cuda.flash_sdp_enabled()
    with torch.autograd.set_detect_anomaly(True), torch.autograd.graph.disable_saved_tensors_hooks("mine"):
        torch.backends.cuda.enable_flash_sdp(not flash)
        try:
            with pytest.raises((IndexError, RuntimeError)):
                compiled(x, torch.tensor([9]))
            assert torch.is_anomaly_enabled()
            assert torch._C._autograd._saved_tensors_hooks_get_disabled_error_message() == "mine"
            assert torch.backends.cuda.flash_sdp_enabled() is not flash
        finally:
            torch.backends.cuda.enable_flash_sdp(flash)


def test_whether_a_profiler_runs():
    def asks(x):
        return x + 1 if torch.autograd._profiler_enabled() else x - 1

    compiled = framegraft.compile(asks, backend="eager", fullgraph=True)
    x = torch.ones(2)
    assert torch.equal(compiled(x), x - 1)
    with torch.autograd.profiler.profile():
        assert torch.equal(compiled(x), x + 1)
    assert torch.equal(compiled(x), x - 1)


def of_inference_mode():
    with torch.inference_mode():
        return (torch.arange(6.0).reshape(2, 3) * 2,)


@differential(of_inference_mode, graphs=1)
def test_views_of_inference_tensors(x):
    made = x[0], x.t(), x + 1, (x + 1)[0], x.reshape(6), x.unbind(0)[0], x.split(1)[1], x.view(3, 2), x.detach(), x.contiguous(), x.expand(2, 2, 3)
    return [t.is_inference() for t in made], made


@differential(of_inference_mode)
def test_writes_to_views_of_inference_tensors(x):
    NOTES.append("before")
    try:
        x[1] *= 2
    except RuntimeError:
        NOTES.append("refused")
    x[0] += 1


NOTES: list[str] = []
