"""mark_dynamic and its relatives, ours and torch's."""

import pytest
import torch

import framegraft
from framegraft.exc import ConstraintViolation


def count(fn, *tensors, **settings):
    compiled = framegraft.compile(fn, backend="eager", **settings)
    for t in tensors:
        assert torch.equal(compiled(t), fn(t))
    return len(framegraft._debug_get_cache_entry_list(fn))


def marked(size, mark=framegraft.mark_dynamic, dim=0, **limits):
    t = torch.randn(size, 3)
    mark(t, dim, **limits)
    return t


def double(x):
    return x.sum(0) * x.shape[0]


@pytest.mark.parametrize("mark", [framegraft.mark_dynamic, framegraft.maybe_mark_dynamic, framegraft.mark_unbacked])
def test_one_capture(mark):
    assert count(double, marked(4, mark), torch.randn(5, 3), torch.randn(9, 3)) == 1


def test_torch_marks():
    for name in ("mark_dynamic", "maybe_mark_dynamic"):
        framegraft.reset()
        assert count(double, marked(4, getattr(torch._dynamo, name)), torch.randn(5, 3)) == 1


def test_unbacked_takes_zero_and_one():
    assert count(double, marked(4, framegraft.mark_unbacked), torch.randn(1, 3), torch.randn(0, 3)) == 1


def test_limits():
    assert count(double, marked(4, min=3, max=8), torch.randn(8, 3), torch.randn(3, 3)) == 1
    parts = [p for e in framegraft._debug_get_cache_entry_list(double) for p in e.check_fn.code_parts]
    assert "3 <= L['x'].size(0)" in parts and "L['x'].size(0) <= 8" in parts
    assert count(double, torch.randn(9, 3)) == 2


def test_limits_decide_branches():
    def f(x):
        return x + 1 if x.shape[0] >= 3 else x

    assert count(f, marked(4, min=3), torch.randn(7, 3)) == 1
    assert not any(">= 3" in p for e in framegraft._debug_get_cache_entry_list(f) for p in e.check_fn.code_parts)


def test_violation():
    def f(x):
        return x + torch.ones(4, 1)

    with pytest.raises(ConstraintViolation, match=r"L\['x'\]\.size\(0\).*needs it to be 4"):
        framegraft.compile(f, backend="eager")(marked(4))
    assert count(f, marked(4, framegraft.maybe_mark_dynamic)) == 1


def test_static_stays():
    tensors = [marked(n, framegraft.mark_static) for n in (2, 3, 4)]
    assert count(double, *tensors) == 3
    framegraft.reset()
    t = torch.randn(2, 3)
    framegraft.mark_static(t)
    assert count(double, t, torch.randn(3, 3), dynamic=True) == 2


def test_dimensions_from_the_end_and_several():
    t = torch.randn(4, 5)
    framegraft.mark_dynamic(t, (-1, 0))
    assert count(double, t, torch.randn(6, 7)) == 1


@pytest.mark.parametrize("wrong, error", [((torch.ones(2), 1), IndexError), ((3, 0), TypeError), ((torch.ones(2), "a"), TypeError)])
def test_wrong_arguments(wrong, error):
    for mark in (framegraft.mark_dynamic, framegraft.maybe_mark_dynamic, framegraft.mark_static, framegraft.mark_unbacked):
        with pytest.raises(error):
            mark(*wrong)
    with pytest.raises(ValueError):
        framegraft.mark_dynamic(torch.ones(2), 0, min=4, max=3)
