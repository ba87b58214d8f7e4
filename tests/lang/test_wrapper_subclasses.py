"""Tensors made of other tensors, with ``__torch_dispatch__`` in Python: captured like others, behind compilers, too."""

import dataclasses
import enum
import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import return_and_correct_aliasing

import framegraft
import framegraft.testing
from framegraft.errors import Unsupported

BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager"])


class Kind(enum.Enum):
    LINEAR = 1
    SQUARE = 2


@dataclasses.dataclass
class Options:
    kind: Kind
    bits: int


class Scaled(torch.Tensor):
    """``data * scale``, with a context, methods in the place of Tensor's and a ``__torch_function__``."""

    log: tuple = (1, 2)  # in the place of Tensor's

    @staticmethod
    def __new__(cls, inner, scale, options):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=scale.dtype, device=inner.device)

    def __init__(self, inner, scale, options):
        self.inner, self.scale, self.options = inner, scale, options

    def __repr__(self):
        return f"Scaled({self.options})"

    def __tensor_flatten__(self):
        return ["inner", "scale"], {"options": self.options}

    @classmethod
    def __tensor_unflatten__(cls, parts, context, size, stride):
        return cls(parts["inner"], parts["scale"], context["options"])

    @classmethod
    def make(cls, x, options):
        scale = x.abs().amax() / (2 ** (options.bits - 1) - 1)
        return cls((x / scale).round().to(torch.int8), scale, options)

    def dequantize(self):
        plain = self.inner.to(self.scale.dtype) * self.scale
        return plain if self.options.kind is Kind.LINEAR else plain * plain

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is F.linear:
            weight = args[1]
            return F.linear(args[0], weight.dequantize(), *args[2:])
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.clone.default):
            self = args[0]
            made = cls(func(self.inner), func(self.scale), self.options)
            return return_and_correct_aliasing(func, args, kwargs or {}, made)
        args, kwargs = pytree.tree_map_only(cls, cls.dequantize, (args, kwargs or {}))
        return func(*args, **kwargs)


def two(*shape, grad=False):
    made = TwoTensor(torch.randn(shape), torch.randn(shape))
    return made.requires_grad_() if grad else made


def parts(value):
    """What can be compared of a result or an argument."""
    if isinstance(value, (list, tuple)):
        return [parts(v) for v in value]
    if not isinstance(value, torch.Tensor):
        return value
    if hasattr(value, "__tensor_flatten__"):
        names, context = value.__tensor_flatten__()
        return type(value), value.requires_grad, value.is_leaf, context, [parts(getattr(value, n)) for n in names]
    return type(value), value.dtype, value.requires_grad, value.stride(), value.detach().clone().tolist()


def check(fn, make, backend, calls=4):
    """The same results, arguments and gradients as in eager mode, whatever ``make(number of the call)`` gives."""
    framegraft.reset()
    compiled = framegraft.compile(fn, backend=backend, fullgraph=True)
    for call in range(calls):
        seen = []
        for run in (fn, compiled):
            torch.manual_seed(call)
            args = make(call)
            result = run(*args)
            found = [parts(result), parts(args)]
            for loss in pytree.tree_leaves(result):
                if isinstance(loss, torch.Tensor) and loss.requires_grad:
                    loss.sum().backward(torch.ones_like(loss.sum()), retain_graph=True)
            found.append([parts(a.grad) for a in pytree.tree_leaves(args) if isinstance(a, torch.Tensor) and a.is_leaf])
            seen.append(found)
        assert seen[0] == seen[1], call


PROGRAMS = {
    "arithmetic": (lambda x, y: (x * y).relu() @ y.t() + 1, lambda i: (two(3, 4), torch.randn(3, 4))),
    "of several": (lambda x, y: torch.cat([torch.stack([x, y]).sum(0), torch.where(x > 0, x, y)]), lambda i: (two(3, 4), two(3, 4))),
    "gradients": (lambda x, w: F.linear(x, w).sin(), lambda i: (two(3, 4, grad=True), two(2, 4, grad=True))),
    "not a leaf": (lambda x: x * 3, lambda i: (two(3, grad=True) * 2,)),
    "in place": (lambda x: x.mul_(2).add_(1), lambda i: (two(3, 4),)),
    "a view": (lambda x: x.mul_(2) + 1, lambda i: (two(4, 3)[1:],)),
    "views": (lambda x: (x.view(-1), x[0], x.t().contiguous(), x.split(2)), lambda i: (two(4, 4),)),
    "sizes": (lambda x: x.view(x.shape[0] * 2, -1) * x.dim(), lambda i: (two(2 + i, 4),)),
    "tensors inside": (lambda x: x.a + x.b, lambda i: (two(3),)),
    "those of results": (lambda x: ((y := x + 1).a * 2, y.a is y.a, y.b is y.a, y.shape, y), lambda i: (two(3),)),
    "written to": (lambda x: (x.a.add_(1), x * 2), lambda i: (two(3),)),
    "read behind a write": (lambda x: (x.mul_(2), x.a * 3)[1], lambda i: (two(3),)),
    "those of results, written to": (lambda x: ((y := x * 2).a.add_(1), y * 3), lambda i: (two(3),)),
    "what it holds is given, too": (lambda x, a: (x.mul_(2), a + 1), lambda i: ((x := two(3)), x.a)),
    "one tensor twice inside": (lambda x: x.mul_(3), lambda i: (TwoTensor(a := torch.randn(3), a),)),
    "nested": (lambda x: x * 2 + x.sum(), lambda i: (TwoTensor(two(3), two(3)),)),
    "made": (lambda a, b: (y := TwoTensor(a, b), y.a is a, y + 1), lambda i: (torch.randn(2), torch.randn(2))),
    "made of parts": (lambda x: TwoTensor(x.b, x.a) * 2, lambda i: (two(2),)),
    "its class": (lambda x: (type(x) is TwoTensor, isinstance(x, nn.Parameter), x + 1),
                  lambda i: (nn.Parameter(two(3)) if i == 1 else two(3, grad=True),)),
    "of inference mode": (lambda x: x * 2 + 1, lambda i: (torch.inference_mode(i != 2)(two)(3),)),
    "its method": (lambda x: x.get_elem_a() + 1, lambda i: (two(3),)),
    "an attribute": (lambda x: (setattr(x, "c", 5), x + x.c)[1], lambda i: (two(3),)),
    "copies": (lambda x: (x.clone(), x.detach()), lambda i: (two(3),)),
    "random": (lambda x: F.dropout(x, 0.5) + torch.rand_like(x), lambda i: (two(3),)),
    "sometimes": (lambda x: x + 1, lambda i: (two(3) if i % 2 else torch.ones(3),)),
    "a context": (lambda x: (x + 1, x.dequantize(), x.options.bits, x.log, torch.log(x).shape),
                  lambda i: (Scaled.make(torch.randn(3), Options(list(Kind)[i % 2], 8 if i < 3 else 4)),)),
    "its own functions": (lambda x, w: (F.linear(x, w) + w.sum(), w.unflatten(1, (1, 3))), lambda i: (torch.randn(2, 3), Scaled.make(torch.randn(4, 3), OPTIONS))),
    "made with an object": (lambda x: (y := Scaled.make(x, OPTIONS), F.linear(x, y), y.scale, y.options is OPTIONS),
                            lambda i: (torch.randn(3, 3),)),
}
OPTIONS = Options(Kind.LINEAR, 8)


@BACKENDS
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, backend):
    check(*PROGRAMS[name], backend)


def test_writes_to_results():  # AOTAutograd takes the gradient of such a one for a plain tensor, and refuses it
    check(lambda x: x.mul_(3), lambda i: (two(3, grad=True) * 2,), "eager")


@BACKENDS
def test_parameters(backend):
    def model():
        torch.manual_seed(0)
        layers = [nn.Linear(4, 4) for _ in range(4)]
        for layer in layers[:2]:
            layer.weight = nn.Parameter(TwoTensor(layer.weight.detach().clone(), layer.weight.detach() * 2))
        layers[2].weight = nn.Parameter(Scaled.make(layers[2].weight.detach(), OPTIONS), requires_grad=False)
        return nn.Sequential(*layers[2:], *layers[:2])

    found = []
    for compiled in (False, True):
        net = model()
        run = framegraft.compile(net, backend=backend, fullgraph=True) if compiled else net
        optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1)
        losses = []
        for _ in range(3):
            loss = run(torch.ones(2, 4)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(parts(loss))
        found.append([losses, [parts(p) for p in net.parameters()]])
    assert found[0][0][0][0] is TwoTensor and found[0] == found[1]


def changed(change, make=lambda: two(3), fn=lambda x: x * 2 + x.sum()):
    compiled = framegraft.compile(fn, backend="aot_eager")
    value = make()
    assert parts(compiled(value)) == parts(fn(value))
    change(value)
    assert parts(compiled(value)) == parts(fn(value))


def test_other_tensors_inside():
    changed(lambda x: setattr(x, "a", torch.randn(3)))
    changed(lambda x: (setattr(x, "a", x.a.double()), setattr(x, "b", x.b.double())), fn=lambda x: (x + 1).a)
    changed(lambda x: x.a.t_(), make=lambda: two(3, 3), fn=lambda x: x.a.contiguous())


def test_another_context():
    def make():
        return Scaled.make(torch.randn(3), Options(Kind.LINEAR, 8))

    changed(lambda x: setattr(x.options, "kind", Kind.SQUARE), make, lambda x: x + 1)
    changed(lambda x: setattr(x, "options", Options(Kind.SQUARE, 8)), make, lambda x: x + 1)


def test_another_method(monkeypatch):
    def dispatch(cls, func, types, args, kwargs=None):
        return torch.full((3,), 5.0)

    changed(lambda x: monkeypatch.setattr(TwoTensor, "__torch_dispatch__", classmethod(dispatch)), fn=lambda x: x + 1)


def test_what_it_is_made_of_is_set():
    def f(x):
        y = x + 1
        x.a = x.b
        return y, x + 1

    x, y = two(3), None
    other = TwoTensor(x.a.clone(), x.b.clone())
    assert parts(framegraft.compile(f, backend="eager")(x)) == parts(f(other))
    assert x.a is x.b and y is None


def test_lets_go():
    def f(x, y):
        z = TwoTensor(y, y) + x
        return F.linear(y, Scaled.make(y, OPTIONS)) + z.a + x.b

    framegraft.compile(f, backend="eager", fullgraph=True)(two(3, 3), torch.ones(3, 3))  # what is loaded once
    framegraft.reset()
    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    x, y = two(3, 3), torch.ones(3, 3)
    left = [weakref.ref(t) for t in (x, x.a, x.b, y)]
    gc.collect()
    gc.disable()
    try:
        compiled(x, y)
        del x, y
        assert not any(ref() is not None for ref in left)
    finally:
        gc.enable()


@BACKENDS
@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_beside_them(backend, dynamic):
    weight = Scaled.make(torch.randn(4, 3), OPTIONS)
    counter = framegraft.testing.CompileCounterWithBackend(backend)
    compiled = framegraft.compile(lambda x: F.linear(x, weight).relu() + weight.sum(), backend=counter, dynamic=dynamic, fullgraph=True)
    for rows in (2, 3, 5, 7):
        x = torch.randn(rows, 3)
        assert torch.equal(compiled(x), F.linear(x, weight).relu() + weight.sum())
    assert counter.frame_count == (1 if dynamic else 2)


class Replacing(TwoTensor):
    """Operations in place put other tensors into it; it has no detach()."""

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Replacing(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func is torch.ops.aten.add_.Tensor:
            args[0].a, args[0].b = args[0].a + args[1], args[0].b + args[1]
            return args[0]
        if func is torch.ops.aten.detach.default:
            raise NotImplementedError
        a, b = (pytree.tree_map_only(TwoTensor, lambda t: getattr(t, name), args) for name in "ab")  # noqa: B023
        return cls(func(*a), func(*b))


@BACKENDS
def test_writes_that_replace_what_it_holds(backend):
    def f(x):
        y = x.a * 2
        x.add_(1)
        return y, x.a * 3, x * 2

    args = [Replacing(torch.ones(3), torch.ones(3)) for _ in range(2)]
    compiled = framegraft.compile(f, backend=backend)
    for _ in range(2):
        assert parts(compiled(args[0])) == parts(f(args[1])) and parts(args[0]) == parts(args[1])


class Opaque(TwoTensor):
    """Its context cannot be compared."""

    def __tensor_flatten__(self):
        return ["a", "b"], object()

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Opaque(inner["a"], inner["b"])


class Limited(TwoTensor):
    """Its context is a constant, but one of which nothing is known."""

    def __tensor_flatten__(self):
        return ["a", "b"], torch.finfo(torch.float32)

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Limited(inner["a"], inner["b"])


class Compared(TwoTensor):
    def __eq__(self, other):
        return "compared"

    __hash__ = torch.Tensor.__hash__


@pytest.mark.parametrize("cls", [Opaque, Limited, Compared])
def test_refused(cls):
    def f(x):
        return x + 1, x == x  # noqa: PLR0124

    x = cls(torch.ones(3), torch.ones(3))
    result, expected = framegraft.compile(f, backend="eager")(x)[0], f(x)[0]
    assert type(result) is cls and torch.equal(result.a, expected.a)
    with pytest.raises(Unsupported, match=cls.__name__):
        framegraft.compile(f, backend="eager", fullgraph=True)(x)


@BACKENDS
@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_of_their_own(backend, dynamic):
    counter = framegraft.testing.CompileCounterWithBackend(backend)

    def f(x, y):
        return (x + 1) * y.sum(0), x.a.sum(), x.view(-1).shape[0]

    compiled = framegraft.compile(f, backend=counter, dynamic=dynamic, fullgraph=True)
    for rows in (2, 3, 5, 7):
        args = two(rows, 4), torch.randn(rows, 4)
        assert parts(compiled(*args)) == parts(f(*args))
    assert counter.frame_count == (1 if dynamic else 2)


@BACKENDS
@pytest.mark.parametrize("mark", [framegraft.mark_dynamic, framegraft.maybe_mark_dynamic, torch._dynamo.mark_dynamic])
@pytest.mark.parametrize("make", [two, lambda *shape: TwoTensor(two(*shape), two(*shape)), lambda *shape: Scaled.make(
    torch.randn(shape), Options(Kind.LINEAR, 8))])
def test_marked_sizes(backend, mark, make):
    """What is inside, and is as large, has the same dimensions."""
    counter = framegraft.testing.CompileCounterWithBackend(backend)

    def f(x):
        return F.linear(torch.ones(2, 4), x) if type(x) is Scaled else x.sin()

    compiled = framegraft.compile(f, backend=counter, fullgraph=True)
    for rows in (3, 2, 5):
        x = make(rows, 4)
        mark(x, 0)
        assert parts(compiled(x)) == parts(f(x))
    assert counter.frame_count == (3 if type(x) is Scaled else 1)  # its class would be asked for its sizes in each call


@dataclasses.dataclass(frozen=True)
class Described:
    shape: torch.Size
    device: torch.device


class Doubled(torch.Tensor):
    """Twice as long as what it holds, and with its own size in its context."""

    @staticmethod
    def __new__(cls, inner, described):
        sizes = (inner.shape[0] * 2, *inner.shape[1:])
        return torch.Tensor._make_wrapper_subclass(cls, sizes, inner.stride(), None, None, inner.dtype, inner.layout, inner.device)

    def __init__(self, inner, described):
        self.inner, self.described = inner, described

    def __repr__(self):
        return "Doubled"

    def __tensor_flatten__(self):
        return ["inner"], self.described

    @staticmethod
    def __tensor_unflatten__(parts, context, size, stride):
        return Doubled(parts["inner"], context)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        out = func(*pytree.tree_map_only(Doubled, lambda t: t.inner, args), **(kwargs or {}))
        if out.shape[0] > 3:
            out = out + 2
        return Doubled(out, Described(out.shape, out.device))


@BACKENDS
@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_that_differ_from_those_inside(backend, dynamic):
    def f(x, y):
        made = Doubled(y, Described(y.shape, y.device))
        return (x.mul(x) if x.shape[0] < 13 else x.div(x)), made + 1, made.mul(made)

    compiled = framegraft.compile(f, backend=backend, dynamic=dynamic, fullgraph=True)
    for rows in (4, 5, 3, 8, 2):
        inner, y = torch.randn(rows, 4), torch.randn(rows + 1, 4)
        x = Doubled(inner, Described(inner.shape, inner.device))
        assert parts(compiled(x, y)) == parts(f(x, y))


def test_other_sizes_of_the_whole():
    """What is inside does not tell how large the wrapper says that it is."""
    compiled = framegraft.compile(lambda x: x.shape[0] * torch.ones(1), backend="eager", dynamic=True)
    a = torch.randn(3)
    for size in (3, 4, 5, 6):
        x = TwoTensor(a, a.clone(), torch.Size([size]), (1,))
        assert compiled(x).item() == size


@pytest.fixture
def mesh():
    distributed = pytest.importorskip("torch.distributed")
    from torch.distributed.device_mesh import DeviceMesh  # noqa: PLC0415 - takes a while

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield DeviceMesh("cpu", [0])
    distributed.destroy_process_group()


@BACKENDS
def test_distributed_tensors(mesh, backend):
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor  # noqa: PLC0415

    def f(x, y):
        z = (x @ y).relu() + 1
        local = z.redistribute(placements=[Replicate()]).to_local() * 2
        return DTensor.from_local(local, mesh, [Shard(0)], run_check=False) + z, local, y.full_tensor()

    x, y = distribute_tensor(torch.randn(4, 4), mesh, [Shard(0)]), distribute_tensor(torch.randn(4, 4), mesh, [Replicate()])
    compiled = framegraft.compile(f, backend=backend, fullgraph=True)
    for args in ((x, y), (y, y), (y, x), (x, y)):
        (found, *plain), (expected, *others) = compiled(*args), f(*args)
        assert type(found) is type(expected) and found.placements == expected.placements
        assert torch.equal(found.to_local(), expected.to_local()) and parts(plain) == parts(others)


@BACKENDS
def test_tensor_parallel(mesh, backend):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: PLC0415

    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
        parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        run = framegraft.compile(model, backend=backend, fullgraph=True) if compiled else model
        for rows in (2, 3):
            loss = run(torch.arange(8.0 * rows).view(rows, 8)).sum()
            loss.backward()
        found.append((loss, *(p.grad.to_local() for p in model.parameters())))
    assert all(type(a) is type(b) and torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_slots_and_placements(mesh):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor  # noqa: PLC0415

    def f(x, placements):
        y = (x + 1).redistribute(placements=placements)
        same = x._local_tensor is x._local_tensor, x.placements == y.placements, y.placements == (Shard(1),), x.device_mesh is mesh
        return y._local_tensor * 2, same, y.placements, placements[0].is_shard()

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    for placement in (Replicate(), Shard(1), Shard(0), Shard(1)):
        x = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
        (found, *told), (expected, *wanted) = compiled(x, [placement]), f(x, [placement])
        assert torch.equal(found, expected) and told == wanted
