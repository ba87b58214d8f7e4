"""Fake tensors: each rule of tensor/factories.py, reductions.py and networks.py against what the operation really gives."""

import itertools
import random

import pytest
import torch

from framegraft.tensor import shapes
from framegraft.tensor.fake import CaptureMode, to_fake
from framegraft.tensor.formats import dense, iterated, suggests_contiguous

from .test_shapes import LAYOUTS, facts, made

aten = torch.ops.aten
F32 = torch.float32
DTYPES = (F32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64)


def all_of(value):
    return [value] if isinstance(value, torch.Tensor) else list(value)


def copied(value):
    if isinstance(value, list):
        return [copied(v) for v in value]
    return value.clone(memory_format=torch.preserve_format) if isinstance(value, torch.Tensor) else value


def compare(op, args, kwargs=None):
    """Whether a rule answered; what it answered is checked against the real result."""
    mode, kwargs = CaptureMode(), kwargs or {}
    twins: dict = {}

    def fake(value):
        if isinstance(value, list):
            return [fake(v) for v in value]
        return twins.setdefault(id(value), to_fake(mode, value)) if isinstance(value, torch.Tensor) else value

    fakes, named = [fake(a) for a in args], {k: fake(v) for k, v in kwargs.items()}
    try:
        got = shapes.infer(mode, op, tuple(fakes), named)
    except RuntimeError:  # the kernel was asked
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it raises
            op(*args, **kwargs)
        return False
    if got is NotImplemented:
        return False
    if op._schema.is_mutable and op is not aten.native_batch_norm.default:
        assert got is fakes[0]
        given = [args[0], *map(copied, args[1:])]
        assert facts(op(*given, **kwargs)) == facts(got)
        return True
    expected = op(*map(copied, args), **kwargs)
    assert [facts(g) for g in all_of(got)] == [facts(e) for e in all_of(expected)], (
        op, [facts(a) if isinstance(a, torch.Tensor) else a for a in args], kwargs)
    return True


def sources(dtypes=DTYPES):
    """All dtypes in one layout, all layouts in the first dtype."""
    return [LAYOUTS["turned"](d) for d in dtypes] + [make(dtypes[0]) for make in LAYOUTS.values()]


OPTIONS = [{}, *({"dtype": d} for d in DTYPES), {"dtype": F32, "device": torch.device("cpu"), "pin_memory": False, "layout": torch.strided}]
FILLS = (0, 2, -1, 0.5, True, float("inf"), 1e300, 1 << 40)
DIMS = [(), (0,), (-1,), ([-1],), ([0, 1], True), ([-1, 0], False), ([1], True), ([],), (0, True), (1, False), (None, True), (9,)]


def factories():
    for op in (aten.zeros.default, aten.ones.default, aten.empty.memory_format, aten.rand.default, aten.randn.default):
        yield from ((op, (s,), o) for s in ([], [3], [2, 0], [2, 3, 4]) for o in OPTIONS)
    yield from ((aten.full.default, ([2, 3], f), o) for f in FILLS for o in OPTIONS)
    yield from ((aten.scalar_tensor.default, (f,), o) for f in FILLS for o in OPTIONS)
    ranges = [(5,), (0,), (-3,), (2, 7), (7, 2), (0, 10, 3), (10, 0, -3), (0, 10, -1), (3, 3), (0, 1, 0), (2.5,), (1, 1 << 40, 1 << 38)]
    ops = (aten.arange.default, aten.arange.start, aten.arange.start_step)
    yield from ((ops[len(r) - 1], r, o) for r in ranges for o in OPTIONS)


def from_one():
    for x, o in itertools.product(sources(), OPTIONS[:6]):
        yield from ((op, (x, [2, 1]), o) for op in (aten.new_zeros.default, aten.new_ones.default, aten.new_empty.default))
        yield from ((op, (x,), {**o, **form}) for form in ({}, {"memory_format": torch.contiguous_format})
                    for op in (aten.zeros_like.default, aten.ones_like.default, aten.empty_like.default, aten._to_copy.default,
                               aten.rand_like.default, aten.randn_like.default))
        yield from ((aten.new_full.default, (x, [2, 1], f), o) for f in FILLS[:3])
        yield from ((aten.full_like.default, (x, f), o) for f in FILLS[:3])
    for x in sources():
        yield from ((op, (x, *d), {}) for op in (aten.tril.default, aten.triu.default) for d in ((), (1,), (-1,)))
        yield from ((aten.native_dropout.default, (x, p, t), {}) for p in (0.5, 0.0, 1.0) for t in (True, False, None))
        yield from ((aten.bernoulli_.float, (x.clone(), p), {}) for p in (0.5, 2.0))
        yield from ((aten.flip.default, (x, d), {}) for d in ([0], [-1, 0], [5]))
        yield from ((aten.roll.default, (x, *d), {}) for d in (([1], [0]), ([1, 2], [-1, 0]), ([1], [])))
        yield from ((aten.repeat.default, (x, d), {}) for d in ([2], [2, 1], [1, 1, 3, 1], [2, 1, 1, 2, 0]))
        yield from ((aten.constant_pad_nd.default, (x, p, *v), {}) for p in ([1, 0], [0, 0], [1, 2, 0, 1], [-1, 1]) for v in ((), (1,), (0.5,)))
        yield from ((op, (x, *d), {}) for op in REDUCTIONS for d in DIMS)


def pairs():
    index = {d: made((2, 3), d) - 1 for d in (torch.int64, torch.int32)}
    for a, b in itertools.product(sources((F32, torch.int64)), repeat=2):
        if a.dim() == b.dim() and a.dim():
            yield from ((aten.cat.default, ([a, b], d), {}) for d in (0, -1))
        yield aten.cat.default, ([torch.zeros(0), a.float()],), {}
    for x in sources():
        yield from ((aten.copy_.default, (x.clone(), y), {}) for y in (made((3,), F32), made((2, 3), torch.int64), made((), torch.complex64)))
        yield from ((aten.masked_fill_.Scalar, (x.clone(), m, v), {}) for m in (made((3,), torch.bool), made((2, 3), torch.bool), made((3,), F32))
                    for v in FILLS[:6])
        yield from ((aten.gather.default, (x, d, i), {}) for d in (0, 1, -1) for i in index.values())
        yield from ((aten.topk.default, (x, *k), {}) for k in ((1,), (2, 0), (0,), (9,)))
        yield from ((aten.sort.default, (x, *d), {}) for d in ((), (0, True), (-1, False)))
        yield from ((aten.index_select.default, (x, d, i[0] * 0), {}) for d in (0, 1, -1) for i in index.values())


def positions():
    rng = random.Random(0)
    for _ in range(2000):
        shape = [rng.choice([1, 2, 3, 4]) for _ in range(rng.choice([1, 2, 3, 4]))]
        base = [rng.choice([1, 2, 3]) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        given = [torch.zeros([1 if rng.random() < 0.3 else n for n in base], dtype=rng.choice([torch.int64, torch.int64, torch.int32]))
                 if rng.random() < 0.6 else None for _ in shape]
        x = torch.ones(shape) if rng.random() < 0.8 else strided(rng, shape)
        yield aten.index.Tensor, (x, given), {}


REDUCTIONS = (aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim, aten.logsumexp.default, aten.amax.default,
              aten.amin.default, aten.max.default, aten.min.default, aten.any.default, aten.any.dim, aten.all.default, aten.all.dim,
              aten.argmax.default, aten.argmin.default, aten.cumsum.default, aten.cumprod.default, aten.max.dim, aten.min.dim)


def spreads():
    ops = (aten.var.correction, aten.std.correction, aten.var_mean.correction, aten.std_mean.correction)
    yield from ((op, (x, *d), {"correction": c, "keepdim": k}) for op in ops for x in sources((F32, torch.bfloat16))
                for d in ((), ([0],), ([-1],), ([0, 1],)) for c in (0, 1) for k in (False, True))


def networks():
    yield from normalizations()
    images = [make(d) for name, make in LAYOUTS.items() if name in ("image", "channels last", "permuted") for d in (F32, torch.float64, torch.bfloat16)]
    for x in (*images, made((2, 4, 1, 1), F32), made((1, 1, 6, 6), F32)):
        c = x.shape[1]
        for groups in (1, c):
            weights = (torch.ones(c, dtype=x.dtype), None)
            yield aten.native_group_norm.default, (x, *weights, x.shape[0], c, x.shape[2] * x.shape[3], groups, 1e-5), {}
        yield from ((aten.max_pool2d_with_indices.default, (x, *p), {}) for p in
                    (([2, 2],), ([2], [1]), ([3, 3], [2, 2], [1, 1]), ([2, 2], [2, 2], [0, 0], [2, 2]), ([2, 2], [2, 2], [0, 0], [1, 1], True)))
        yield from ((aten.avg_pool2d.default, (x, *p), {}) for p in
                    (([2, 2],), ([3, 3], [2, 2], [1, 1]), ([2, 2], [2, 2], [0, 0], True), ([2, 2], [1, 1], [1, 1], False, False)))
        yield aten.upsample_nearest2d.default, (x, [7, 3]), {}
        yield from ((op, (x, [7, 3], True), {}) for op in (aten.upsample_bilinear2d.default, aten.upsample_bicubic2d.default))
    for dtype, lengths in itertools.product((F32, torch.float64, torch.bfloat16), ((3, 3), (3, 5), (1, 1))):
        q = torch.randn(2, lengths[0], 4, 8, dtype=dtype).transpose(1, 2)
        k = torch.randn(2, lengths[1], 4, 8, dtype=dtype).transpose(1, 2)
        masks = ({}, {"attn_mask": torch.zeros(lengths, dtype=dtype)}, {"scale": 0.5})
        yield from ((aten._scaled_dot_product_flash_attention_for_cpu.default, (q, k, k, *more), mask)
                    for mask in masks for more in ((), (0.0, lengths[0] == lengths[1])))
    for dtype, reduction in itertools.product((F32, torch.float64, torch.bfloat16), (0, 1, 2)):
        scores = torch.randn(4, 5, dtype=dtype)
        yield aten.nll_loss_forward.default, (scores, torch.tensor([0, 1, -100, 4]), None, reduction, -100), {}
        yield aten.nll_loss_forward.default, (scores[0], torch.tensor(1), None, reduction, -100), {}


def normalizations():
    for layout, training, affine in itertools.product(("matrix", "image", "channels last", "turned", "empty"), (False, True), (False, True)):
        x = LAYOUTS[layout](F32)
        channels, width = x.shape[1], x.shape[-1:]
        stats = (torch.zeros(channels), torch.ones(channels))
        weights = (torch.ones(channels), torch.zeros(channels)) if affine else (None, None)
        yield aten.native_layer_norm.default, (x, list(width), *((torch.ones(width), None) if affine else (None, None)), 1e-5), {}
        yield aten.native_batch_norm.default, (x, *weights, *stats, training, 0.1, 1e-5), {}


@pytest.mark.parametrize("calls", [factories, from_one, pairs, positions, spreads, networks], ids=lambda f: f.__name__)
def test_rules(calls):
    answered = {}
    for op, args, kwargs in calls():
        takes = [a for a in op._schema.arguments if not a.kwarg_only]
        if not sum(not a.has_default_value() for a in takes) <= len(args) <= len(takes):
            continue
        try:
            op(*map(copied, args), **kwargs)
        except (RuntimeError, IndexError, TypeError, NotImplementedError) as error:
            if "out of bounds" in str(error) or "Declaration:" in str(error):  # the values say so; no program can call it so
                continue
            mode = CaptureMode()
            fakes = [to_fake(mode, a) if isinstance(a, torch.Tensor) else [to_fake(mode, t) if isinstance(t, torch.Tensor) else t for t in a]
                     if isinstance(a, list) else a for a in args]
            try:
                told = shapes.infer(mode, op, tuple(fakes), {k: to_fake(mode, v) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})
            except RuntimeError:
                continue
            assert told is NotImplemented, (op, [facts(a) if isinstance(a, torch.Tensor) else a for a in args], kwargs)
            continue
        answered[op] = answered.get(op, 0) + compare(op, args, kwargs)
    assert all(answered.values()), [str(op) for op, n in answered.items() if not n]


def test_every_rule_is_tried():
    tried = {op for calls in (factories, from_one, pairs, positions, spreads, networks) for op, _, _ in calls()}
    assert set(shapes.MADE) <= tried


def test_what_draws_random_numbers_says_so():
    for op, args in ((aten.randn.default, ([2],)), (aten.native_dropout.default, (torch.ones(2), 0.5, True)),
                     (aten.bernoulli_.float, (torch.ones(2), 0.5)), (aten.zeros.default, ([2],))):
        mode = CaptureMode()
        fakes = tuple(to_fake(mode, a) if isinstance(a, torch.Tensor) else a for a in args)
        assert shapes.infer(mode, op, fakes, {}) is not NotImplemented
        assert mode.random == (op is not aten.zeros.default)


def test_running_statistics_are_written():
    for training in (False, True):
        mode = CaptureMode()
        x, mean, var = (to_fake(mode, t) for t in (torch.ones(2, 3), torch.zeros(3), torch.ones(3)))
        shapes.infer(mode, aten.native_batch_norm.default, (x, None, None, mean, var, training, 0.1, 1e-5), {})
        assert [mean._version, var._version] == [int(training)] * 2


def strided(rng, shape):
    """A tensor of ones with strides of one of many kinds."""
    rank = len(shape)
    kind = rng.randrange(5)
    if not rank or kind == 0:
        return torch.ones(shape)
    if kind == 1:
        order = rng.sample(range(rank), rank)
        return torch.ones([shape[i] for i in order]).permute([order.index(i) for i in range(rank)])
    if kind == 2:
        return torch.ones([1 if rng.random() < 0.4 else n for n in shape]).expand(shape)
    if kind == 3 and rank == 4:
        return torch.ones(shape).to(memory_format=torch.channels_last)
    return torch.ones(100_000).as_strided(shape, [rng.choice([0, 1, 2, 3, 7, 12]) for _ in shape])


def test_strides_of_element_wise_operations():
    rng = random.Random(0)
    for _ in range(3000):
        shape = [rng.choice([1, 1, 2, 3, 4]) for _ in range(rng.choice([0, 1, 2, 3, 3, 4, 4, 5]))]
        a = strided(rng, shape)
        smaller = [1 if rng.random() < 0.3 else n for n in shape]
        b = strided(rng, smaller[rng.randrange(len(shape) + 1):] if rng.random() < 0.3 else smaller)
        for result, operands, with_number in ((a + b, [a, b], False), (a + 1, [a], True), (a.sin(), [a], False)):
            assert result.stride() == iterated(result.shape, operands, with_number), [facts(t) for t in operands]
        assert torch.empty_like(a).stride() == a.stride() or not dense(a.shape, a.stride())
        assert not a.is_contiguous() or suggests_contiguous(a) or 1 in a.shape
        if a.dim() == 4:  # it allocates what the tensor suggests
            padded = aten.constant_pad_nd.default(a, [1, 0])
            assert padded.is_contiguous() or not suggests_contiguous(a)
