"""Operations that a kernel refuses for the dtypes of its tensors, of which fake tensors know nothing."""

import operator

import pytest
import torch
import torch.nn.functional as F

import framegraft
from framegraft.tensor import kernels
from framegraft.tensor.fake import CaptureMode, to_fake

f32, f64, i64, b8, c64 = torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64
square, vector = (3, 3), (3,)
REFUSED = [
    (F.linear, (square, f64), (square, f32)),
    (torch.mm, (square, f32), (square, f64)),
    (operator.matmul, (square, f32), (square, f64)),
    (torch.addmm, (square, f32), (square, f64), (square, f32)),
    (torch.dot, (vector, f32), (vector, f64)),
    (F.binary_cross_entropy, (vector, f32), (vector, f64)),
    (lambda x, w: F.layer_norm(x, (3,), w), (square, f32), (vector, f64)),
    (lambda x, w: F.conv1d(x[None], w[None]), (square, f32), (square, f64)),
    (lambda x: x.softmax(0), (square, i64)),
    (lambda x: x.relu(), (square, c64)),
    (operator.sub, (vector, b8), (vector, b8)),
    (F.gelu, (vector, i64)),
    (torch.abs, (vector, b8)),
    (lambda x: x.argmax(), (vector, b8)),
    (torch.bernoulli, (vector, i64)),
    (lambda x, y: torch.index_copy(x, 0, torch.tensor([0]), y[:1]), (square, f32), (square, f64)),
]


def zeros(spec):
    return torch.zeros(spec[0], dtype=spec[1])


class Counted(torch.nn.Module):
    seen: torch.Tensor

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, fn, *tensors):
        self.calls += 1
        self.seen += 1
        return fn(*tensors)


@pytest.mark.parametrize("fn, specs", [(fn, specs) for fn, *specs in REFUSED])
def test_what_was_done_before_is_done(fn, specs):
    def run(wrap):
        module = Counted()
        with pytest.raises(RuntimeError) as caught:
            wrap(module)(fn, *map(zeros, specs))
        return str(caught.value), module.calls, module.seen.tolist()

    assert run(lambda module: framegraft.compile(module, backend="eager")) == run(lambda module: module)


@pytest.mark.parametrize("fn, specs", [
    (torch.add, [(vector, f32), (vector, f64)]),
    (torch.where, [(vector, b8), (vector, f32), (vector, f64)]),
    (lambda x, i: x.index_select(0, i), [(square, f32), (vector, i64)]),
    (torch.embedding, [(square, f32), (vector, i64)]),
    (F.cross_entropy, [(square, f32), (vector, i64)]),
    (lambda x, w: F.layer_norm(x, (3,), w), [(square, torch.bfloat16), (vector, f32)]),
    (torch.mm, [(square, i64), (square, i64)]),
    (lambda x, i: x[i], [((1000, 1000), f32), (vector, i64)]),
])
def test_what_is_taken(fn, specs):
    tensors = [zeros(spec) for spec in specs]
    state = torch.get_rng_state()
    mode = CaptureMode()
    with mode:
        fake = fn(*[to_fake(mode, tensor) for tensor in tensors])
    assert torch.equal(torch.get_rng_state(), state)
    real = fn(*tensors)
    assert (fake.shape, fake.dtype) == (real.shape, real.dtype)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [
    lambda x, v: x.masked_fill_(x > 0, v),
    lambda x, v: x.fill_(v),
    lambda x, v: x.clamp_(max=v),
    lambda x, v: torch.full_like(x, v),
    lambda x, v: torch.tensor(v) + x,
    lambda x, v: x.mul_(v),
])
def test_numbers_that_a_dtype_cannot_hold(fn, backend):
    class Counted:
        rate = 1.5

    def main(x, y):
        Counted.rate *= Counted.rate
        Counted.rate *= Counted.rate
        y.add_(1)
        return fn(x, Counted.rate)

    def run(call):
        Counted.rate, seen, y = 1.5, [], torch.zeros(1)
        for _ in range(4):
            try:
                seen.append(call(torch.ones(2), y).tolist())
            except RuntimeError as error:
                seen.append(str(error))
            seen.append((Counted.rate, y.item()))
        return seen

    assert run(framegraft.compile(main, backend=backend)) == run(main)


def refused(fn, *tensors, dynamic=None):
    """How often a module was called that counts calls, when it gives the error of ``fn``."""
    module = Counted()
    with pytest.raises(RuntimeError):
        framegraft.compile(module, backend="eager", dynamic=dynamic)(fn, *tensors)
    return module.calls, module.seen.tolist()


@pytest.mark.parametrize("n, width, dynamic", [(3, 5, False), (3, 6, True), (20000, 7, False), (2, 300, False)])
@pytest.mark.parametrize("dtype", [f32, torch.float16, torch.bfloat16])
def test_matrices_of_any_size(n, width, dynamic, dtype, monkeypatch):
    monkeypatch.setattr(kernels, "_ANSWERS", {})
    given = torch.ones(n, width, dtype=dtype), torch.ones(width, width, dtype=f64)
    assert refused(F.linear, *given, dynamic=dynamic) == (1, [1.0, 1.0])


def test_an_operation_that_was_not_asked_is_asked_later(monkeypatch):
    monkeypatch.setattr(kernels, "_ANSWERS", {})
    weight = torch.ones(3, dtype=f64)
    for n in (20000, 3):
        counted = refused(lambda x, w: F.layer_norm(x, (3,), w), torch.ones(n, 3), weight)
    assert counted == (1, [1.0, 1.0])
