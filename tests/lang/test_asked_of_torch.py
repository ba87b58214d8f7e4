"""What programs ask torch about itself and about tensors: functions of keywords, of tracers and of transforms."""

import torch
from torch.fx import _symbolic_trace

import framegraft

from .differential import differential


@differential(graphs=1)
def test_of_a_tensor_by_its_name(x):
    return torch.is_floating_point(input=x), torch.is_complex(input=x), torch.numel(input=x), x + 1


@torch.jit.script_if_tracing
def scaled(x, factor: float = 2.0):
    return x * factor


@differential(graphs=1)
def test_of_tracers(x):
    if _symbolic_trace.is_fx_tracing() or torch.jit._unwrap_optional(x) is None:
        return x
    return scaled(x), scaled(x, 3.0), scaled(x, factor=1.5)


@differential(graphs=1)
def test_of_the_backward_pass(x):
    return x + 1 if torch.autograd._is_checkpoint_valid() else x


@differential(graphs=1)
def test_of_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x.to(torch.get_autocast_gpu_dtype()), torch.get_autocast_dtype("cpu")


def asks(x):
    return x + 1 if torch._C._are_functorch_transforms_active() else x - 1


@differential(graphs=1)
def test_of_transforms(x):
    return asks(x)


@differential()
def test_of_transforms_inside(x):
    return asks(x), torch.vmap(asks)(x), asks(x)


def asks_of_nothing(n):
    return n + 1 if torch._C._are_functorch_transforms_active() else n - 1


def test_of_transforms_around():
    compiled = framegraft.compile(asks_of_nothing, backend="eager")
    assert compiled(3) == 2
    assert torch.vmap(lambda x: x + compiled(3))(torch.zeros(2)).tolist() == [4.0, 4.0]
    assert compiled(3) == 2
