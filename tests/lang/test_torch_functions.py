"""Tensors of classes that torch asks: those that inherit Tensor's ``__torch_function__``, and those with one of their own."""

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

import framegraft

from .differential import differential

LOG = []


class Tagged(torch.Tensor):
    """Inherits everything."""

    scale = 2.0

    def twice(self):
        return self * self.scale

    @property
    def title(self):
        return getattr(self, "_title", "none")

    @classmethod
    def of(cls, x):
        return x.as_subclass(cls)


class Finer(Tagged):
    pass


class Other(torch.Tensor):
    pass


def make(cls, *shape, grad=False, **attrs):
    made = torch.arange(1.0, 1.0 + torch.Size(shape or (4,)).numel()).reshape(shape or (4,)).as_subclass(cls)
    for name, value in attrs.items():
        setattr(made, name, value)
    return made.detach().requires_grad_() if grad else made


def tagged():
    return make(Tagged, _title="t"), torch.ones(4)


@differential(tagged, graphs=1)
def test_operations_give_the_class_again(t, x):
    values, indices = t.max(0)
    return t + 1, 1 - t, 2 / t, -t, t ** 2, t @ x, t[1:], t[0], t > 2, torch.sin(t), t.sum(), values, indices, x + t, torch.add(x, t)


@differential(tagged, graphs=1)
def test_functions_in_python(t, x):
    return F.relu(t), F.softmax(t, dim=0), F.dropout(t, 0.0), torch.cat([x, t]), torch.stack([t, t]), torch.where(x > 0, t, x), t.split(2)


@differential(tagged, graphs=1)
def test_what_is_told_of_them(t, x):
    return (t.shape, t.dtype, t.device, t.ndim, t.requires_grad, t.size(0), t.dim(), t.numel(), len(t), t.is_floating_point(),
            torch.is_floating_point(t), torch.is_tensor(t), torch.numel(t), x + 1)


@differential(tagged, graphs=1)
def test_classes(t, x):
    y = t + x
    return (type(t), type(y) is Tagged, isinstance(y, Tagged), isinstance(y, torch.Tensor), isinstance(x, Tagged), y.__class__,
            issubclass(type(y), torch.Tensor), isinstance(t, torch.nn.Parameter))


@differential(tagged, graphs=1)
def test_attributes_and_methods(t, x):
    y = t.twice()
    y.extra = t.title
    y.scale = 3.0
    t._title = "new"
    return t.title, y.title, y.twice(), y.extra, hasattr(t, "extra"), t.scale


@differential(tagged, graphs=1)
def test_views_and_plain_ones(t, x):
    return t.view(2, 2), t.unsqueeze(0).mT, t.detach(), t.data, t.as_subclass(torch.Tensor), t.clone(), t.to(torch.float64), t.contiguous()


@differential(tagged, graphs=1)
def test_made_in_the_trace(t, x):
    y = x.as_subclass(Tagged)
    y.extra = 1
    z = Tagged.of(x * 2)
    return y, y * 2, z, z + t, y is x, type(z)


class Labelled(torch.Tensor):
    def __init__(self, data, label="none"):
        self.label = label

    @staticmethod
    def __new__(cls, data, label="none"):
        return torch.Tensor._make_subclass(cls, data)


class Counted(torch.Tensor):
    @staticmethod
    def __new__(cls, data, count=1):
        made = super().__new__(cls, data)
        made.count = count
        return made

    def __init__(self, data, count=1):
        self.after = count + 1


@differential(tagged, graphs=1)
def test_made_by_the_class(t, x):
    y, z, u = Labelled(x * 2, label="y"), Counted(x, 3), Other(x + 1)
    return y, y.label, y + 1, z, z.count, z.after, z * z.count, u * 2, torch.Tensor._make_subclass(Other, x), type(u)


@differential(lambda: (torch.ones(4, requires_grad=True), torch.arange(4.0, requires_grad=True) * 2))
def test_made_by_the_class_of_what_has_a_gradient(leaf, x):
    y = Labelled(x)
    return y, y.requires_grad, y.is_leaf, y * leaf, Labelled(leaf) * leaf, Labelled(x * 2) + 1


@differential(lambda: (torch.ones(4, requires_grad=True), torch.arange(4.0, requires_grad=True) * 2))
def test_made_by_the_inherited_class_of_what_has_a_gradient(leaf, x):
    z = Counted(x)
    return z, z * 2, z.is_leaf, Counted(leaf) * leaf


@differential(tagged)
def test_made_by_the_class_and_changed(t, x):
    y, z = Labelled(x), Other(x)
    y += 1
    z *= 2
    x.sub_(3)
    print(y.label)
    y.add_(1)
    return x, y, z, y + z, y._version, z._version, x._version, y._is_view(), z._is_view()


@differential(tagged)
def test_made_by_the_class_of_other_things(t, x):
    def tried(f, *args):
        try:
            made = f(*args)
            return type(made), made.shape, made.requires_grad
        except (RuntimeError, TypeError) as error:
            return type(error).__name__

    found = [tried(torch.Tensor._make_subclass, Other, x, flag) for flag in (True, False)]
    found += [tried(Other, [1.0, 2.0]), tried(Other, 2, 3), tried(Other), tried(Other, t), tried(Other, x.to(torch.int64)), tried(Counted, x)]
    with torch.no_grad():
        found += [tried(Other, x), tried(Labelled, x)]
    return found, x


@differential(tagged, graphs=1)
def test_in_place(t, x):
    t.add_(1)
    t[0] = 5
    t += x
    t[1:] *= 2
    y = t * 2
    y.mul_(3)
    return t, y, t.relu_() is t, x.add_(t)


@differential(tagged, graphs=1)
def test_iterated(t, x):
    a, b, *rest = t
    return a, b, rest, [e + 1 for e in t], len(list(t))


@differential(lambda: (make(Tagged, grad=True), torch.ones(4, requires_grad=True)), graphs=1)
def test_gradients(t, x):
    y = (t * x).sin()
    with torch.no_grad():
        z = t * 2
    return y, y.sum(), z, y.requires_grad, z.requires_grad, y.detach()


@differential(tagged, graphs=1)
def test_without_grad_mode(t, x):
    with torch.no_grad():
        y = t * 2
    y.add_(1)
    return y


@differential(lambda: (make(Tagged), make(Finer), make(Other)), graphs=1)
def test_two_classes_one_of_the_other(t, u, o):
    return t + u, u + t, torch.add(t, u), torch.stack([t, u]), u.twice(), o * 2


@differential(lambda: (make(Tagged), make(Other)))
def test_two_classes_that_have_nothing_in_common(t, o):
    y = t * 2
    try:
        return y, t + o
    except TypeError as error:
        return y, type(error)


LINEAR = torch.nn.Linear(4, 2)
LAYERS = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(4)))


@differential(tagged, graphs=1)
def test_modules(t, x):
    return LINEAR(t), LAYERS(x), LAYERS(t)


def sharing():
    base = torch.arange(6.0)
    t = make(Tagged)
    return base, base[2:].as_subclass(Tagged), t, t.as_subclass(torch.Tensor), t


@differential(sharing, graphs=1)
def test_memory_that_is_shared(base, part, t, plain, same):
    base.add_(1)
    part.mul_(2)
    t.add_(1)
    plain.mul_(3)
    return base + 0, part * 1, t + plain, same is t


@differential(lambda: (make(Tagged, grad=True) * 2, make(Tagged, grad=True)))
def test_in_place_with_a_gradient(u, t):
    u.add_(1)
    with torch.no_grad():
        t.add_(1)
    return u * t


@differential(tagged)
def test_breaks(t, x):
    y = t + 1
    y.extra = "here"
    print("half-way")
    return y * 2, y.extra, y


@differential(tagged)
def test_read(t, x):
    y = t * 2
    return y.sum().item(), y.tolist(), bool((y > 0).all()), {y: 1}[y]


class Logging(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append((cls.__name__, func.__name__, [t.__name__ for t in types], len(args), sorted(kwargs or {})))
        return super().__torch_function__(func, types, args, kwargs or {})


@differential(lambda: (make(Logging), torch.ones(4)), graphs=1)
def test_what_is_asked(t, x):
    y = t + 1, 1 - t, t - x, x * t, t[0], -t, t ** 2, 2 ** t, t == x, t @ x, ~(t > 1), abs(t), t // 2, t % 2
    z = torch.sin(t), t.sum(dim=0, keepdim=True), F.relu(t), F.softmax(t, -1), torch.cat([x, t], dim=0), F.dropout(t, p=0.0)
    return y, z, LOG


@differential(lambda: (make(Logging, 2, 3), torch.ones(3)), graphs=1)
def test_which_attributes_are_asked(t, x):
    return t.shape, t.dtype, t.size(0), len(t), t.mT, t.ndim, t.requires_grad, [row for row in t], t.add_(x), LOG


@differential(lambda: (make(Logging), torch.ones(4)))
def test_what_is_asked_around_breaks(t, x):
    y = t + x
    print(len(LOG))
    y += 1
    return y, LOG


GETTERS = {torch.Tensor.ndim.__get__: "dimensions", torch.Tensor.shape.__get__: "shape", torch.add: "sum"}


class Looking(torch.Tensor):
    """Tells functions apart as torch's documentation shows it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func == torch.Tensor.ndim.__get__:
            return 10
        LOG.append((GETTERS.get(func), func in (torch.Tensor.shape.__get__, torch.Tensor.T.__get__), torch.Tensor.shape.__get__ != func,
                    func in {torch.Tensor.shape.__get__: 1}, func == torch.add))
        return super().__torch_function__(func, types, args, kwargs or {})


@differential(lambda: (make(Looking, 2, 3), torch.ones(3)), graphs=1)
def test_getters_are_told_apart(t, x):
    return t.ndim, t.shape, torch.add(t, x), t.T, t.sin(), LOG


@differential(lambda: (make(Logging, 2, 3), torch.ones(3)), graphs=1)
def test_functions_in_python_that_only_call_methods(t, x):
    return F.sigmoid(F.sigmoid(t)), F.tanh(F.tanh(t)), F.hardsigmoid(F.sigmoid(t)), F.hardswish(t + x), LOG


class Doubling(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor) and func is not torch.Tensor.mul:
                out = (out * 2).as_subclass(cls)
        return out


class DoublingMore(Doubling):
    pass


@differential(lambda: (make(Doubling), torch.ones(4)), graphs=1)
def test_answers_of_their_own(t, x):
    return t + x, torch.cos(t), t * 2, t.sum(), x - t, t.shape


@differential(lambda: (make(Doubling), make(DoublingMore), make(Logging)), graphs=1)
def test_order_of_classes(t, u, w):
    return t + u, u + t, t + w, torch.add(u, t), torch.stack([t, u])


@differential(lambda: (make(Doubling), torch.ones(4)), graphs=1)
def test_switched_off(t, x):
    with torch._C.DisableTorchFunctionSubclass():
        y = t + x
        inside = torch._C._is_torch_function_enabled()
    return y, t + x, inside, torch._C._is_torch_function_enabled()


@differential(lambda: (make(Doubling), torch.ones(4)))
def test_switched_off_around_a_break(t, x):
    with torch._C.DisableTorchFunctionSubclass():
        y = t + x
        print("inside")
        z = y + t
    return y, z, t + x


class Choosy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.add or func in (torch.Tensor.mul, torch.Tensor.__rsub__):
            return NotImplemented
        return super().__torch_function__(func, types, args, kwargs)


@differential(lambda: (make(Choosy), make(Doubling)), graphs=1)
def test_not_implemented(t, u):
    return t + 1, torch.add(t, u), t.mul(u)


@differential(lambda: (make(Choosy),))
def test_implemented_by_nobody(t):
    y = t + 1
    try:
        return y, t * 2
    except TypeError as error:
        return y, type(error)


class Raising(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.sin:
            raise ValueError("no")
        return super().__torch_function__(func, types, args, kwargs or {})


@differential(lambda: (make(Raising),))
def test_raising(t):
    y = t + 1
    try:
        return y, torch.sin(t)
    except ValueError as error:
        return y, error.args


HANDLED = {}


def handles(fn):
    def register(handler):
        HANDLED[fn] = handler
        return handler

    return register


class Table(torch.Tensor):
    @property
    def raw(self):
        return self.as_subclass(torch.Tensor)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in HANDLED:
            return HANDLED[func](*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})


@handles(torch.mean)
def mean(t, scale=1):
    return t.raw.sum() * scale


@handles(torch.Tensor.sub)
def sub(a, b):
    return "subtracted"


@differential(lambda: (make(Table),), graphs=1)
def test_tables_of_functions(t):
    return torch.mean(t), t - 1, t + 1, torch.exp(t)


class Named(torch.Tensor):
    """Carries a name through operations, as many subclasses do."""

    @staticmethod
    def __new__(cls, data, name=""):
        return torch.as_tensor(data).as_subclass(cls)

    def __init__(self, data, name=""):
        self.label = name

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        made = super().__torch_function__(func, types, args, kwargs)
        if isinstance(made, cls):
            made.label = "+".join(a.label for a in args if isinstance(a, Named))
        return made


@differential(lambda: (Named(torch.ones(3), "a"), Named(torch.ones(3), "b")), graphs=1)
def test_attributes_carried_through_operations(a, b):
    c = a + b
    return c, c.label, (c * a).label, (2 * b).label


@differential(lambda: (Doubling(torch.ones(2)), torch.ones(2)), build=True)
def test_in_closures_and_globals():
    held = make(Doubling)

    def f(t, x):
        return held + 1, t + x

    return f


def graphs_of(fn, *args):
    framegraft.reset()
    seen = []

    def backend(gm, inputs):
        seen.append((gm, [type(i) for i in inputs]))
        return gm.forward

    return framegraft.compile(fn, backend=backend)(*args), seen


def test_graphs_hold_plain_tensors():
    _, [(gm, inputs)] = graphs_of(lambda t, x: (t + x).sin(), make(Logging), torch.ones(4))
    assert inputs == [torch.Tensor, torch.Tensor]
    assert [n.name for n in gm.graph.nodes if n.op.startswith("call")] == ["add", "sin"]
    assert all(type(n.meta["example_value"]) is not Logging for n in gm.graph.nodes if n.op != "output")


def test_guards_ask_nobody():
    compiled = framegraft.compile(lambda t: type(t), backend="eager")
    t = make(Logging)
    LOG.clear()
    compiled(t)
    compiled(t)
    compiled(make(Logging, 2, 2))
    assert [entry for entry in LOG if entry[1] == "__get__"] == []
    LOG.clear()


def test_recompiled_for_another_class():
    counter = framegraft.testing.CompileCounter()
    compiled = framegraft.compile(lambda t: t + 1, backend=counter)
    for index, cls in enumerate((Tagged, Finer, Doubling, torch.Tensor)):
        t = make(cls)
        for _ in range(2):
            got, expected = compiled(t), t + 1
            assert type(got) is type(expected) is cls
            assert torch.equal(got.as_subclass(torch.Tensor), expected.as_subclass(torch.Tensor))
        assert counter.frame_count == index + 1


def test_a_class_that_changes():
    class Changing(torch.Tensor):
        pass

    compiled = framegraft.compile(lambda t: t + 1, backend="eager")
    t = make(Changing)
    assert type(compiled(t)) is Changing
    Changing.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: 7)
    assert compiled(t) == 7
    Changing.__torch_function__ = torch._C._disabled_torch_function_impl
    assert type(compiled(t)) is torch.Tensor
    del Changing.__torch_function__
    assert type(compiled(t)) is Changing


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compilers(backend):
    def f(t, x):
        y = (t @ torch.ones(3, 3)).relu()
        x.add_(1)
        return y, y.as_subclass(torch.Tensor), t.view(-1)

    def run(fn):
        t, x = make(Logging, 3, 3, grad=True), torch.ones(3, 3)
        LOG.clear()
        y, plain, view = fn(t, x)
        asked = list(LOG)
        y.as_subclass(torch.Tensor).sum().backward()
        with torch._C.DisableTorchFunctionSubclass():
            return type(y), type(plain), type(view), y.tolist(), t.grad.tolist(), x.tolist(), asked

    framegraft.reset()
    expected = run(f)
    compiled = framegraft.compile(f, backend=backend)
    assert run(compiled) == expected
    assert run(compiled) == expected


def test_switched_off_at_the_call():
    compiled = framegraft.compile(lambda t: t + 1, backend="eager")
    t = make(Doubling)
    for _ in range(2):
        with torch._C.DisableTorchFunctionSubclass():
            assert type(compiled(t)) is torch.Tensor
        assert type(compiled(t)) is Doubling


class Multiplying(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.add:
            return torch.mul(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


class Watching(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append((func.__name__, [t.__name__ for t in types], len(args), sorted(kwargs or {})))
        return func(*args, **(kwargs or {}))


@differential(graphs=1)
def test_modes(x):
    with Multiplying():
        y = torch.add(x, 3)
    return y, torch.add(x, 3)


@differential(graphs=1)
def test_what_modes_see(x):
    with Watching() as mode:
        y = x + 1, 1 - x, x[0], F.relu(x), F.dropout(x, 0.0), torch.cat([x, x]), x.sum(dim=0), [e for e in x]
        z = x.shape, x.dtype, len(x), x.size(0), x.dim(), torch.numel(x), x.requires_grad, isinstance(x, torch.Tensor)
        w = torch.ones(3) * x, torch.tensor([1.0, 2.0]), torch.zeros_like(x), torch.arange(3), x.new_zeros(2)
        x[0] = 3
        x.add_(1)
    return x + 1, y, z, w, mode.log


@differential(lambda: (torch.ones(2, 4),), graphs=1)
def test_modes_around_modules(x):
    with Watching() as mode:
        y = LINEAR(x)
    return y, mode.log


@differential(graphs=1)
def test_modes_inside_of_modes(x):
    with Watching() as outer, Multiplying(), Watching() as inner:
        y = torch.add(x, 3) + torch.zeros(3)
    return y, outer.log, inner.log


@differential(lambda: (make(Logging), make(Doubling)), graphs=1)
def test_modes_and_classes(t, u):
    with Watching() as mode:
        y = t + 1, u * 2, t + u
        with torch._C.DisableTorchFunctionSubclass():
            z = t + 1
    return y, z, mode.log, LOG


@differential()
def test_modes_around_breaks(x):
    with Watching() as mode:
        y = x + 1
        print("inside")
        z = y.sum().item()
    return y, z, mode.log


@differential(graphs=1)
def test_modes_left_by_an_exception(x):
    mode = Watching()
    try:
        with mode:
            y = x + 1
            raise ValueError
    except ValueError:
        pass
    return y, x + 1, mode.log


@differential()
def test_modes_and_switches(x):
    with Watching() as mode:
        with torch.no_grad():
            y = x + 1
        z = torch.is_grad_enabled(), torch.get_default_dtype()
    with torch.device("cpu"), Watching() as other:
        w = torch.ones(2)
    return y, z, w, mode.log, other.log


@differential()
def test_modes_that_say_nothing(x):
    class Silent(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    y = x + 1
    try:
        with Silent():
            return y, x + 1
    except TypeError as error:
        return y, type(error)


OUTER = Watching()


@differential()
def test_modes_from_outside(x):
    OUTER.log.clear()
    with OUTER:
        y = x + 1
    return y, OUTER.log


def test_modes_around_the_call():
    compiled = framegraft.compile(lambda x: x + 1, backend="eager")
    x = torch.ones(2)
    for _ in range(2):
        assert compiled(x).tolist() == [2, 2]
        with Watching() as mode:
            y = compiled(x)
        assert y.tolist() == [2, 2]
        assert [entry[0] for entry in mode.log] == ["add"]


# -- objects that are no tensors


class Wrapped:
    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func == torch.sin:
            return "sine", [t.__name__ for t in types]
        plain = [a.tensor if isinstance(a, Wrapped) else [i.tensor for i in a] if isinstance(a, list) else a for a in args]
        return cls(func(*plain, **(kwargs or {})))

    def __add__(self, other):
        return torch.add(self, other)


class WrappedMore(Wrapped):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented if func is torch.mul else (func.__name__, len(types))


@differential(lambda: (Wrapped(torch.ones(4)), torch.ones(4)), graphs=1)
def test_objects_that_are_asked(w, x):
    made = Wrapped(x * 2)
    return (torch.add(w, x).tensor, torch.add(x, w, alpha=2).tensor, (w + made).tensor, torch.stack([w, made]).tensor, x.add(w).tensor,
            torch.sin(made), torch.nn.functional.linear(w, torch.ones(2, 4)).tensor)


@differential(lambda: (Wrapped(torch.ones(4)), WrappedMore(torch.ones(4)), torch.ones(4).as_subclass(Doubling)))
def test_objects_of_several_classes(w, more, t):
    return torch.add(w, more), torch.add(t, more), torch.mul(w, more).tensor, torch.add(w, t).tensor


@differential(lambda: (make(Doubling), torch.ones(4)), graphs=1)
def test_modes_switched_off_too(t, x):
    enabled, disabled = torch._C._is_torch_function_enabled, torch._C._is_torch_function_all_disabled
    with torch._C.DisableTorchFunction():
        y, inside = t + x, (enabled(), disabled())
    return y, t + x, inside, enabled(), disabled()


@differential()
def test_default_devices_switched_off(x):
    with torch.device("meta"):
        with torch._C.DisableTorchFunction():
            y = torch.ones(2) + x[:2]
        z = torch.ones(2)
    return y, z.device, x + 1


def test_default_devices_switched_off_at_the_call():
    def f():
        return torch.ones(2).device.type

    compiled = framegraft.compile(f, backend="eager")
    for off in (torch._C.DisableTorchFunctionSubclass, torch._C.DisableTorchFunction, torch._C.DisableTorchFunctionSubclass):
        with torch.device("meta"), off():
            assert compiled() == f()


@differential(lambda: ([torch.ones(2), torch.ones(3)], (torch.ones(2), torch.zeros(2))), graphs=1)
def test_operations_in_place_on_lists_give_these_back(tensors, others):
    given = [torch._foreach_add_(tensors, 1), torch._foreach_mul_(others, 2), torch._foreach_lerp_(self=tensors, tensors1=tensors, weight=0.5)]
    made = [tensors[0] + 1]
    return given[0] is tensors, given[1] is others, given[2] is tensors, torch._foreach_sqrt_(made) is made, given, torch._foreach_exp(others)
