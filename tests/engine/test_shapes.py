"""Fake tensors: each rule of tensor/shapes.py against what the operation really gives; inputs against their fake twins."""

import itertools

import pytest
import torch

from framegraft.tensor import layouts, shapes
from framegraft.tensor.fake import CaptureMode, to_fake

LAYOUTS = {
    "scalar": lambda d: made((), d),
    "row": lambda d: made((3,), d),
    "matrix": lambda d: made((2, 3), d),
    "one row": lambda d: made((1, 3), d),
    "one column": lambda d: made((2, 1), d),
    "turned": lambda d: made((3, 2), d).t(),
    "strided": lambda d: made((2, 6), d)[:, ::2],
    "expanded": lambda d: made((1, 3), d).expand(2, 3),
    "odd stride": lambda d: made((9,), d).as_strided((1, 3), (7, 1)),
    "empty": lambda d: made((0, 3), d),
    "image": lambda d: made((2, 3, 4, 5), d),
    "channels last": lambda d: made((2, 3, 4, 5), d).to(memory_format=torch.channels_last),
    "permuted": lambda d: made((4, 5, 2, 3), d).permute(2, 3, 0, 1),
}
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]
NUMBERS = [2, 0.5, True, -1]


def made(shape, dtype):
    count = 1
    for n in shape:
        count *= n
    return (torch.arange(count) % 3 + 1).reshape(shape).to(dtype)


def facts(value):
    return type(value).__name__ != "int", value.dtype, value.shape, value.stride(), value.storage_offset(), value.device


def operands():
    one = [make(d) for make in LAYOUTS.values() for d in DTYPES]
    yield from ((a,) for a in one)
    yield from ((a, n) for a in one for n in NUMBERS)
    yield from ((a, a.clone(memory_format=torch.preserve_format)) for a in one)
    floats = [make(torch.float32) for make in LAYOUTS.values()]
    yield from itertools.product(floats, floats)
    yield from ((a, b) for a in (made((2, 3), d) for d in DTYPES) for b in (made(s, d) for s in ((), (2, 3)) for d in DTYPES))


OPERANDS = list(operands())


def compare(op, args):
    """Whether a rule answered; what it answered is checked against the real result."""
    mode = CaptureMode()
    twins = {}
    fakes = tuple(twins.setdefault(id(a), to_fake(mode, a)) if isinstance(a, torch.Tensor) else a for a in args)
    try:
        got = shapes.infer(mode, op, fakes, {})
    except RuntimeError:
        with pytest.raises(RuntimeError):
            op(*args)
        return False
    if got is NotImplemented:
        return False
    in_place = op._schema.is_mutable
    try:
        expected = op(*(a.clone() if in_place and isinstance(a, torch.Tensor) else a for a in args))
    except RuntimeError as error:
        assert "Expected a value of type" in str(error), (op, args, error)  # no program can call it so
        return False
    if in_place:
        assert got is fakes[0] and (expected.dtype, expected.shape) == (got.dtype, got.shape)
    else:
        assert facts(got) == facts(expected), (op, [facts(a) if isinstance(a, torch.Tensor) else a for a in args])
    return True


aten = torch.ops.aten
OTHERS = [aten.where.self, aten.stack.default, aten.masked_fill.Scalar, *layouts.rules(), *shapes.MADE]  # test_layouts.py, test_made.py


@pytest.mark.parametrize("op", [o for o in shapes.RULES if o not in OTHERS], ids=str)
def test_rule_gives_what_the_operation_gives(op):
    tensors = sum(a.type.kind() == "TensorType" for a in op._schema.arguments)
    required = [a for a in op._schema.arguments if not a.has_default_value()]
    answered = 0
    for args in OPERANDS:
        if op is torch.ops.aten.clamp.default and len(args) == 1:
            args = (*args, 0.5)
        if len(args) < len(required) or len(args) > max(tensors, len(required), 2 * (op is torch.ops.aten.clamp.default)) or tensors > 1 and len(args) != 2:
            continue
        if tensors == 1 and len(args) == 2 and isinstance(args[1], torch.Tensor):
            continue
        answered += compare(op, args)
    assert answered > 0 or len(required) > 2


def test_where():
    answered = 0
    for a, b in OPERANDS[len(OPERANDS) // 2 :]:
        for c in (a > 1, a < 9, b.bool()) if isinstance(b, torch.Tensor) and not b.is_complex() and not a.is_complex() else ():
            answered += compare(torch.ops.aten.where.self, (c, a, b))
    assert answered > 50


def test_stack():
    for make, dim in itertools.product(LAYOUTS.values(), (0, -1, 1)):
        part = make(torch.float32)
        mode = CaptureMode()
        got = shapes.infer(mode, aten.stack.default, ([to_fake(mode, part)] * 2, dim), {})
        assert got is NotImplemented or facts(got) == facts(torch.stack([part, part], dim))
    assert got is not NotImplemented or not part.is_contiguous()


def test_masked_fill():
    answered = 0
    for a, b in OPERANDS[-len(LAYOUTS) ** 2 - 98 :]:
        if isinstance(b, torch.Tensor):
            try:
                a.masked_fill(b.bool(), 0.5)
            except RuntimeError:
                continue
            answered += compare(aten.masked_fill.Scalar, (a, b.bool(), 0.5))
    assert answered > 20


def inputs():
    base = torch.randn(4, 6)
    leaf = torch.randn(4, 6, requires_grad=True)
    with torch.no_grad():
        leaf_view = leaf[1:]
    yield from (base, base[1:, ::2], base.t(), leaf, leaf * 2, leaf[1:], leaf_view, leaf.detach(), (leaf * 2).view(24))
    late = torch.randn(3).view(3)
    yield late.requires_grad_()
    yield late.view(1, 3)
    yield torch.nn.Parameter(base)
    yield torch.randn(3, dtype=torch.complex64).conj()
    yield torch.view_as_real(torch.randn(3, dtype=torch.complex64))
    yield torch.randn(4)[2:].clone().resize_(1)
    yield torch.zeros(3).expand(5, 3)
    with torch.inference_mode():
        yield torch.randn(3)
        yield torch.randn(3)[1:]


@pytest.mark.parametrize("index", range(18))
@pytest.mark.parametrize("inference", [False, True])
def test_fake_twin(index, inference):
    real = next(itertools.islice(inputs(), index, None))
    mode = CaptureMode()
    with torch.inference_mode(inference):
        fake = to_fake(mode, real)
        assert to_fake(mode, real) is fake
    assert facts(fake) == facts(real)
    for name in ("requires_grad", "is_leaf"):
        assert getattr(fake, name) == getattr(real, name), name
    assert fake.is_inference() == real.is_inference() and fake.is_conj() == real.is_conj()
    assert fake.untyped_storage().nbytes() == real.untyped_storage().nbytes()
    assert getattr(fake, "_is_param", False) == isinstance(real, torch.nn.Parameter)


def test_views_of_one_base_share_requires_grad():
    base, w = torch.zeros(4), torch.ones(2, requires_grad=True)
    view = base[:2]
    mode = CaptureMode()
    fakes = [to_fake(mode, t) for t in (view, base, w)]
    with mode:
        fakes[0].add_(fakes[2])
    view.add_(w)
    assert [f.requires_grad for f in fakes] == [t.requires_grad for t in (view, base, w)] == [True, True, True]
