"""Modes of torch that see operations (function modes, dispatch modes, default devices), and what asks for classes of tensors."""

import contextlib
import functools

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import framegraft

from .differential import differential


def two():
    return torch.arange(6.0).reshape(2, 3), torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])


class Negating(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return -result if func is torch.add else result


class NegatingBelow(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return -result if func is torch.ops.aten.add.Tensor else result


MODE = Negating()


@differential(two)
def test_function_mode(x, y):
    with Negating():
        z = torch.add(x, y)
    with MODE:
        z = z * torch.add(x, 1)
    return torch.add(z, y)


@differential(two)
def test_dispatch_mode(x, y):
    with NegatingBelow():
        z = x + y
    return z + 1


@differential(two)
def test_device_context(x, y):
    with torch.device("meta"):
        z = torch.ones(2)
    return z.device, x + torch.ones(3), z.shape


@differential(two)
def test_default_device(x, y):
    torch.set_default_device("meta")
    z = torch.ones(2)
    torch.set_default_device(None)
    return z.device, x + torch.ones(3)


class Plain(torch.Tensor):
    pass


@differential(lambda: (torch.ones(3).as_subclass(Plain), torch.ones(3)))
def test_has_torch_function(x, y):
    return torch.overrides.has_torch_function((x,)), torch.overrides.has_torch_function((y, 1)), torch.nn.functional.softmax(x, 0)


@pytest.mark.parametrize("inside", [False, True])
def test_functions_with_a_cache_under_a_default_device(inside):
    def run(wrap):
        @functools.lru_cache
        def made(n):
            return torch.ones(n)

        def f(x):
            with torch.device("meta") if inside else contextlib.nullcontext():
                return x + 1, made(2)

        fn = wrap(f)
        with torch.device("cpu" if inside else "meta"):
            return [fn(torch.ones(2, device="cpu"))[1].device.type for _ in range(2)], made(2).device.type

    assert run(lambda f: framegraft.compile(f, backend="eager")) == run(lambda f: f) == (["meta", "meta"], "meta")


@pytest.mark.skipif(torch.cuda.is_available(), reason="of machines without CUDA")
@differential(lambda: (torch.ones(3, 3),), graphs=1)
def test_contexts_of_an_accelerator_that_there_is_not(x):
    y = x + 1
    with torch.cuda.device(-1):
        y = y * 2
    with torch.autocast("cuda"):
        return y @ y, torch.cuda.is_available()


class Answering:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return f"{func.__name__} called"


@differential(two)
def test_torch_function_of_other_classes(x, y):
    return torch.add(x, Answering()), torch.overrides.has_torch_function((Answering(),)), x + 1


@differential(lambda: (torch.ones(2), torch.nn.Parameter(torch.ones(2)), torch.nn.Buffer(torch.ones(2))), graphs=1)
def test_classes_of_tensors(x, p, b):
    kinds = torch.Tensor, torch.nn.Parameter, torch.nn.Buffer, torch.FloatTensor, torch.LongTensor, torch.cuda.FloatTensor
    return [[isinstance(t, kind) for kind in kinds] for t in (x, p, b, x * p, x.long())], x + b


def marked():
    x = torch.ones(2)
    x._is_param = True
    return (x,)


@differential(marked, graphs=1)
def test_tensor_marked_as_parameter(x):
    return isinstance(x, torch.nn.Parameter), x * 2


@differential(two)
def test_fake_tensors_take_what_real_ones_refuse(x, y):
    row = x[0].clone()
    try:
        row.ne_(y)
    except RuntimeError as error:
        return "refused", row
    return row


@differential(lambda: (torch.ones(2),))
def test_errors_that_leave_no_grad(x):
    with torch.no_grad():
        return torch.normal(x, -x)


@differential(lambda: (torch.ones(2),))
def test_errors_that_leave_no_grad_behind_a_write(x):
    x.add_(1)
    with torch.no_grad():
        return torch.normal(x, -x)


def test_failing_graphs_leave_no_mode_behind():
    def backend(gm, example_inputs):
        def run(*args):
            torch._C._set_grad_enabled(False)
            raise OSError("lost")

        return run

    def f(x):
        with torch.no_grad():
            y = x + 1
        return y * 2

    with pytest.raises(OSError, match="lost"):
        framegraft.compile(f, backend=backend)(torch.ones(2))
    assert torch.is_grad_enabled()


class _Logged:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")

    def __exit__(self, *error):
        self.log.append("out")


@differential(lambda: (torch.ones(3), torch.tensor(3), []))
def test_failing_graphs_leave_blocks_around_a_mode(x, i, log):
    with _Logged(log):
        torch.is_grad_enabled()
        with torch.no_grad():
            x.add_(1)
            return x[i]


@differential(lambda: (torch.ones(2, 3),), graphs=1)
def test_leaves_made_without_grad_mode(x):
    with torch.no_grad():
        z = torch.zeros_like(x).requires_grad_()
        y = x + z * 2
        w = torch.ones(2).requires_grad_(True)
    return y, z, z.requires_grad, y.requires_grad, w, z.is_leaf


@differential(lambda: (torch.ones(2, 3),))
def test_leaves_used_in_grad_mode(x):
    with torch.no_grad():
        z = torch.zeros_like(x).requires_grad_()
    y = (x + z * 2).sum()
    y.backward()
    return y, z.grad
