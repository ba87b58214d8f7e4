"""Fake tensors: each rule of tensor/whole.py against what the function really gives, or that it raises."""

import itertools
import operator

import pytest
import torch
import torch.nn.functional as F

from framegraft.tensor import whole
from framegraft.tensor.fake import CaptureMode, to_fake

from .test_shapes import LAYOUTS, OPERANDS, facts, made

F32 = torch.float32
ODD = [(), (made((3,), F32), 10**30), (made((3,), F32), None), (made((3,), F32), "2"), (2, 3), (made((3,), F32), 1, 2),
       (made((3,), torch.int64), -(2**63) - 1), (made((3,), F32), 1j), (made((3,), F32), made((4,), F32)), (2, made((3,), F32)),
       (True, made((3,), torch.int64)), (0.5, made((3,), torch.int64)), (made((3,), F32).clone().requires_grad_(), 2)]
OPTIONS = [{}, {"inplace": False}, {"approximate": "tanh"}, {"approximate": "no"}, {"alpha": 1}, {"dim": 0}, {"inplace": True}, {"out": None}]


def compare(target, args, kwargs):
    """Whether a rule answered; what it answered is checked against what the program would get, also where autograd records."""
    recorded = [[a.detach().requires_grad_() if i == k else a for k, a in enumerate(args)] for i, of in enumerate(args)
                if isinstance(of, torch.Tensor) and (of.is_floating_point() or of.is_complex())]
    answered = [compare_one(target, given, kwargs) for given in (args, *recorded)]
    assert len(set(answered)) == 1, "gradients change no shape"
    return answered[0]


def compare_one(target, args, kwargs):
    mode = CaptureMode()
    twins = {}
    fakes = [twins.setdefault(id(a), to_fake(mode, a)) if isinstance(a, torch.Tensor) else a for a in args]
    got = whole.infer(mode, target, fakes, kwargs)
    if got is NotImplemented:
        return False
    expected = getattr(args[0], target)(*args[1:], **kwargs) if isinstance(target, str) else target(*args, **kwargs)
    assert facts(got) == facts(expected), (target, [facts(a) if isinstance(a, torch.Tensor) else a for a in args], kwargs)
    assert not any(got is f for f in fakes)
    assert not any(expected is a for a in args)
    assert (got.requires_grad, got.is_leaf, got._version) == (expected.requires_grad, expected.is_leaf, 0)
    return True


@pytest.mark.parametrize("target", [t for t in whole._RULES if t not in (F.linear, torch.matmul, operator.matmul)],
                         ids=lambda t: t if isinstance(t, str) else f"{t.__module__}.{t.__name__}")
def test_every_function(target):
    answered = 0
    for args in (*OPERANDS, *ODD):
        for kwargs in OPTIONS if len(args) < 2 else OPTIONS[:2]:
            answered += compare(target, args, kwargs)
    if target in (F.softmax, torch.softmax, "softmax"):
        for make, dim in itertools.product(LAYOUTS.values(), (0, 1, -1, 7, True, None)):
            for dtype in (F32, torch.int64):
                answered += compare(target, (make(dtype), dim), {}) + compare(target, (make(dtype),), {"dim": dim})
                answered += compare(target, (make(dtype),), {"dim": dim, "dtype": None}) + compare(target, (make(dtype),), {"dtype": F32})
    if target is F.layer_norm:
        weights = [None, made((3,), F32), made((2, 3), F32), made((3,), torch.float64)]
        for make, shape, w, b in itertools.product(LAYOUTS.values(), ((3,), [3], (2, 3), (), 3), weights, weights):
            answered += compare(target, (make(F32), shape, w, b, 1e-5), {})
    assert answered > 10


@pytest.mark.parametrize("situation", ["inference", "cast", "transform", "symbols"])
def test_where_torch_must_say(situation):
    mode, x = CaptureMode(), torch.ones(2, 2)
    fake = to_fake(mode, x)
    assert whole.infer(mode, torch.add, [fake, fake], {}) is not NotImplemented
    if situation == "inference":  # autograd refuses to save such a tensor, where it has to
        with torch.inference_mode():
            frozen = to_fake(mode, torch.ones(2, 2))
        assert whole.infer(mode, torch.mul, [to_fake(mode, torch.ones(2, 2, requires_grad=True)), frozen], {}) is NotImplemented
    elif situation == "cast":
        with torch.autocast("cpu"):
            assert whole.infer(mode, torch.add, [fake, fake], {}) is NotImplemented
    elif situation == "transform":
        seen = []
        torch.func.grad(lambda a: (seen.append(whole.infer(mode, torch.add, [fake, fake], {})), a.sum())[1])(x)
        assert seen == [NotImplemented]
    else:
        mode.shape_env = object()
        assert whole.infer(mode, torch.add, [fake, fake], {}) is NotImplemented


@pytest.mark.parametrize("dtype", [F32, torch.bfloat16])
def test_products(dtype):
    shapes_ = [(3,), (2, 3), (1, 3), (2, 2, 3), (1, 2, 3), (2, 1, 2, 3), (0, 3), (2, 3, 3)]
    operands = [made(s, dtype) for s in shapes_] + [made((3, 2), dtype).t(), made((2, 3, 2), dtype).transpose(1, 2), made((1, 3), dtype).expand(2, 3)]
    weights = [made((4, 3), dtype), made((3, 4), dtype).t(), made((1, 3), dtype)]
    calls = [(torch._C._nn.linear, (a, w, *more)) for a in operands for w in weights for more in ((), (made(w.shape[:1], dtype),), (None,))]
    calls += [(torch.matmul, (a, b)) for a in operands for b in [*operands, *(o.mT for o in operands if o.dim() > 1)]]
    calls += [(function, (a, b.detach().requires_grad_(), *more)) for function, (a, b, *more) in calls]
    answered = 0
    for function, args in calls:
        mode = CaptureMode()
        fakes = [to_fake(mode, a) if isinstance(a, torch.Tensor) else a for a in args]
        with mode:
            got = whole.infer(mode, function, fakes, {})
        try:
            expected = function(*args)
        except RuntimeError:
            assert got is NotImplemented
            continue
        if got is not NotImplemented:
            answered += 1
            assert facts(got) == facts(expected), (function, args)
            assert (got.requires_grad, got.is_leaf) == (expected.requires_grad, expected.is_leaf)
    assert answered > 40
    with CaptureMode() as mode, torch.autocast("cpu"):
        assert whole.infer(mode, torch.matmul, [to_fake(mode, torch.ones(2, 2, 2))] * 2, {}) is NotImplemented
