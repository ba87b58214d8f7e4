"""Hooks on saved tensors inside of the function."""

import pytest
import torch
from torch.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

import framegraft

from .differential import differential


def leaves():
    return torch.arange(1.0, 7.0).reshape(2, 3).div(7).requires_grad_(), torch.ones(2, 3) / 3


def to_half(t):
    return t.to(torch.bfloat16)


def to_float(t):
    return t.to(torch.float32)


def quantize(t):
    scale = t.abs().max() / 127
    return (t / scale).round().to(torch.int8), scale


def dequantize(packed):
    values, scale = packed
    return values.to(torch.float32) * scale


@differential(leaves)
def test_half_precision(x, y):
    z = x * 2
    with saved_tensors_hooks(to_half, to_float):
        w = z.sin() * y + z * z
    return (w * z).exp()


@differential(leaves)
def test_quantized(x, y):
    with saved_tensors_hooks(quantize, dequantize):
        return torch.nn.functional.softmax(x * y, dim=-1) * x


@differential(leaves)
def test_hooks_made_inside(x, y):
    k, scale = 3.0, y * 2
    with saved_tensors_hooks(lambda t: t * k, lambda t: t / k + scale):
        z = x * x
    hooks = saved_tensors_hooks(pack_hook=lambda t: t.detach(), unpack_hook=lambda t: -t)
    with hooks:
        with saved_tensors_hooks(lambda t: (t,), lambda packed: packed[0] * 2):
            w = x.sin()
        w = w * x.cos()
    return z * w * x


@differential(leaves)
def test_no_gradients(x, y):
    with torch.no_grad(), saved_tensors_hooks(to_half, to_float):
        z = x.sin() * y
    return z + 1


@differential(leaves)
def test_break_inside(x, y):
    z = x * 2
    with saved_tensors_hooks(to_half, to_float):
        w = z.sin()
        print("half-way")
        w = w * z.cos()
    return w * z


SEEN: list = []


@differential(leaves)
def test_hooks_that_do_more(x, y):
    def count(t):
        SEEN.append(t.shape)
        return t

    z = x * 2
    with saved_tensors_hooks(count, lambda t: t):
        w = z.sin()
    with saved_tensors_hooks(lambda t: t if t.dim() > 1 else t * 2, lambda t: t):
        w = w * z[0]
    with saved_tensors_hooks(lambda t: t * torch.rand(1), lambda t: t):
        w = w * z
    with save_on_cpu():
        w = w * z
    return w, len(SEEN)


@differential(leaves)
def test_variables_that_change(x, y):
    k = 2.0
    with saved_tensors_hooks(lambda t: t, lambda t: t * k):
        z = x * x
    k = 5.0
    return z


@differential(leaves)
def test_writes_to_what_is_kept(x, y):
    z = x * 2
    with saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        w = z.sin()
    z.mul_(3)
    return w


@differential(leaves)
def test_errors(x, y):
    found = []
    z = x * 2
    try:
        with saved_tensors_hooks(lambda t: t.view(7), lambda t: t):
            z = z.sin()
    except RuntimeError as error:
        found.append(str(error)[:20])
    try:
        with saved_tensors_hooks(to_half):
            z = z.sin()
    except TypeError as error:
        found.append(str(error)[-20:])
    return z * x, found


@differential(leaves)
def test_error_inside(x, y):
    z = x * 2
    with saved_tensors_hooks(to_half, to_float):
        z = z.sin()[torch.tensor(9)]
    return z


@differential(leaves, graphs=1)
def test_disabled(x, y):
    z = x * 2
    with disable_saved_tensors_hooks("not here"):
        z = z.sin()
        with disable_saved_tensors_hooks("nor here"):
            z = z * y
    return z * x


@differential(leaves)
def test_disabled_and_used(x, y):
    z = x * 2
    with disable_saved_tensors_hooks("not here"):
        z = z.sin()
        try:
            with saved_tensors_hooks(to_half, to_float):
                z = z * z
        except RuntimeError as error:
            text = str(error)
        print("half-way")
        told = torch._C._autograd._saved_tensors_hooks_get_disabled_error_message()
    return z * x, text, told, torch._C._autograd._saved_tensors_hooks_get_disabled_error_message()


def disables_only(x):
    with disable_saved_tensors_hooks("not here"):
        return len(x)


def disables_and_computes(x):
    with disable_saved_tensors_hooks("not here"):
        return x.sin()


@pytest.mark.parametrize("f", [disables_only, disables_and_computes])
@pytest.mark.parametrize("hooked", [(False, True, False), (True, False, True)])
def test_disabled_where_there_are_hooks(f, hooked):
    compiled = framegraft.compile(f, backend="eager")
    x, _ = leaves()
    for under in hooked:
        if under:
            with saved_tensors_hooks(to_half, to_float), pytest.raises(RuntimeError, match="not here"):
                compiled(x)
        else:
            assert torch.equal(torch.as_tensor(compiled(x)), torch.as_tensor(f(x)))


@differential(leaves)
def test_disabled_inside_of_hooks(x, y):
    with saved_tensors_hooks(to_half, to_float):
        try:
            with disable_saved_tensors_hooks("not here"):
                pass
        except RuntimeError as error:
            return x * 2, str(error)


@differential(leaves)
def test_checkpoint_where_they_are_disabled(x, y):
    def disables(x):
        with disable_saved_tensors_hooks("not here"):
            return x.sin()

    found = []
    try:
        checkpoint(disables, x, use_reentrant=False)
    except RuntimeError as error:
        found.append(str(error))
    with disable_saved_tensors_hooks("not here"):
        try:
            checkpoint(torch.sin, x, use_reentrant=False)
        except RuntimeError as error:
            found.append(str(error))
    return x * y, found


def test_checkpoint_called_where_they_are_disabled():
    def f(x):
        return checkpoint(torch.sin, x, use_reentrant=False)

    compiled = framegraft.compile(f, backend="eager")
    x, _ = leaves()
    assert torch.equal(compiled(x), x.sin())
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        compiled(x)


def test_hooks_around_and_inside():
    """Those of a function that runs under others, and fails; the outer ones stay."""

    def g(x, index):
        with saved_tensors_hooks(to_half, to_float):
            return x.sin()[index] * 2

    compiled = framegraft.compile(g, backend="eager")
    x, _ = leaves()
    wanted, = torch.autograd.grad(g(x, torch.tensor(1)).sum(), x)
    for _ in range(2):
        got, = torch.autograd.grad(compiled(x, torch.tensor(1)).sum(), x)
        assert torch.equal(got, wanted)
    seen = []
    with saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t):
        with pytest.raises(IndexError):
            compiled(x, torch.tensor(9))
        seen.clear()
        (x * x).sum()
        assert seen
    with disable_saved_tensors_hooks("elsewhere"), pytest.raises(RuntimeError, match="elsewhere"):
        compiled(x, torch.tensor(1))
    seen.clear()
    (x * x).sum()
    assert not seen
