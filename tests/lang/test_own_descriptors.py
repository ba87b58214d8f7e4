"""Classes that change what a builtin one, or torch's, does when it is looked up, set or called."""

import functools

import pytest
import torch

import framegraft

from .differential import differential

ONE = (lambda: (torch.arange(1.0, 4.0),),)


class Hundred(staticmethod):
    def __get__(self, obj, owner=None):
        return lambda x: x * 100


class OwnerTold(classmethod):
    def __get__(self, obj, owner=None):
        return lambda x: (x * 100, owner.__name__, obj is None)


class Plain(staticmethod):
    note = 3


class PlainClass(classmethod):
    note = 3


class Fixed(property):
    def __get__(self, obj, owner=None):
        return 100


class Logged(property):
    def __set__(self, obj, value):
        obj.log = value * 100


class NoFunction(staticmethod):
    @property
    def __func__(self):
        return lambda x: x - 1


class Decorated:
    def __init__(self, fn):
        self.fn = fn

    def __call__(self, *args):
        return self.fn(*args)

    def __get__(self, obj, owner=None):
        return lambda x: x * 7 if obj is None else x * 8


class Undeletable:
    def __delete__(self, obj):
        obj.gone = True


class OtherGetter(property):
    fget = property(lambda self: lambda obj: 55)
    fset = property(lambda self: lambda obj, value: None)


class Base:
    told = OtherGetter(lambda self: 44, lambda self, value: self.__dict__.update(set=value))
    sm = Hundred(lambda x: x)
    ps = Plain(lambda x: x + 2)
    nf = NoFunction(lambda x: x + 3)
    cm = OwnerTold(lambda cls, x: x)
    pc = PlainClass(lambda cls, x: (x, cls.__name__))
    fixed = Fixed(lambda self: 1)
    decorated = Decorated(lambda x: x)
    only_delete = Undeletable()

    @Logged
    def logged(self):
        return self.log

    @logged.setter
    def logged(self, value):
        self.log = value

    @classmethod
    def above(cls, x):
        return x


class Derived(Base):
    @classmethod
    def above(cls, x):
        up = super()
        return up.sm(x), up.ps(x), up.cm(x), up.pc(x), up.fixed, up.decorated(x), up.above(x), super(Derived, Derived).fixed

    def of_instance(self, x):
        up = super()
        return up.sm(x), up.ps(x), up.cm(x), up.pc(x), up.fixed, up.decorated(x)


class Module(torch.nn.Module):
    sm = Hundred(lambda x: x)
    cm = OwnerTold(lambda cls, x: x)
    fixed = Fixed(lambda self: 1)
    logged = Logged(lambda self: self.log)


@differential(*ONE)
def test_read_through_the_class(x):
    return (Base.sm(x), Base.ps(x), Base.nf(x), Base.cm(x), Base.pc(x), Base.fixed, getattr(Base, "fixed"), Base.decorated(x),  # noqa: B009
            Derived.cm(x), Derived.pc(x), Base.logged is Base.__dict__["logged"])


@differential(*ONE)
def test_read_through_an_instance(x):
    k = Derived()
    return k.sm(x), k.ps(x), k.nf(x), k.cm(x), k.pc(x), k.fixed, k.decorated(x), k.of_instance(x)


@differential(*ONE)
def test_read_through_super(x):
    return Derived.above(x)


@differential(*ONE)
def test_own_setter(x):
    k = Base()
    k.logged = x
    k.told = 3
    return k.log, k.logged, k.told, sorted(k.__dict__)


@differential(*ONE)
def test_deleter_only(x):
    k = Base()
    try:
        k.only_delete = x
    except AttributeError as error:
        return str(error), x + 1
    return x


@differential(*ONE)
def test_modules(x):
    m = Module()
    m.logged = x
    return Module.sm(x), Module.cm(x), Module.fixed, m.log, m.logged, m.sm(x)


class Doubling(dict):
    def __getitem__(self, key):
        return dict.__getitem__(self, key) * 2


class Tanhs(dict):
    def __getitem__(self, key):
        return torch.nn.Tanh()


class Anything(dict):
    def __contains__(self, key):
        return True

    def __missing__(self, key):
        return len(key)


class Raising(dict):
    def __getitem__(self, key):
        raise KeyError(key)


class Silent(dict):
    note = 1


class Reads(torch.nn.Module):
    def forward(self, x):
        return x + self.w


class Calls(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Identity()

    def forward(self, x):
        return self.inner(x)


def with_table(module, table, made):
    setattr(module, table, made)
    return module


@differential(lambda: (with_table(Reads(), "_buffers", Doubling(w=torch.ones(1))), torch.ones(2)))
def test_own_getitem_of_buffers(m, x):
    return m(x), m.w


@differential(lambda: (with_table(Calls(), "_modules", Tanhs(inner=torch.nn.Identity())), torch.ones(2)))
def test_own_getitem_of_modules(m, x):
    return m(x)


@differential(lambda: (with_table(Reads(), "_parameters", Anything(w=torch.ones(1))), torch.ones(2)))
def test_own_contains_of_parameters(m, x):
    return m(x), hasattr(m, "zz"), m.zz


@differential(lambda: (with_table(Reads(), "_buffers", Raising(w=torch.ones(1))), torch.ones(2)))
def test_own_getitem_that_raises(m, x):
    try:
        return m.w
    except KeyError as error:
        return str(error), x + 1


@differential(lambda: (with_table(Reads(), "_buffers", Silent(w=torch.ones(1))), torch.ones(2)), graphs=1)
def test_subclass_without_methods(m, x):
    return m(x), hasattr(m, "zz")


@differential(lambda: (with_table(Reads(), "_buffers", Doubling(w=torch.ones(1))), torch.ones(2)))
def test_buffer_set_in_own_table(m, x):
    m.w = x
    return m.w, m(x)


class Five(functools.partial):
    def __call__(self, *args, **kwargs):
        return 5


class Noted(functools.partial):
    note = 2


class Tenfold(functools.partial):
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs) * 10


class OtherArguments(functools.partial):
    args = property(lambda self: (5,))


FIVE, NOTED, TENFOLD, OTHER = Five(torch.add, 1), Noted(torch.add, 1), Tenfold(torch.add, 1), OtherArguments(torch.add, 1)


@differential(*ONE)
def test_partial_that_goes_on_with_the_call(x):
    return TENFOLD(x), list(map(TENFOLD, [x, x])), functools.partial(TENFOLD)(x), OTHER(x), OTHER.args


@differential(*ONE)
def test_parts_of_a_partial_of_a_subclass(x):
    return functools.partial(NOTED, 2).func is torch.add, functools.partial(TENFOLD, 2).func is TENFOLD, x + 1


@differential(*ONE)
def test_partial_with_own_call(x):
    return x + FIVE(x), NOTED(x), NOTED.note, functools.partial(FIVE, 3)(x)


@differential(*ONE)
def test_partial_with_own_call_made_inside(x):
    made = Five(torch.add, 1)
    return x + made(x), Noted(torch.add, 1)(x)


@differential(*ONE)
def test_partial_of_own_class_inside_of_a_plain_one(x):
    return functools.partial(functools.partial(Five(torch.add, 1), 2), 3)(x), x + 1


def hooked_by_partial():
    module = torch.nn.Identity()
    module.register_forward_hook(Five(lambda *args: None))
    return module


@differential(lambda: (hooked_by_partial(), torch.ones(2)))
def test_partial_as_hook(m, x):
    return x + m(x)


class SuperApply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

    @classmethod
    def apply(cls, *args):
        return super().apply(*args) * 100


class FuncApply(SuperApply):
    @classmethod
    def apply(cls, *args):
        return UNBOUND_APPLY(cls, *args) * 10


UNBOUND_APPLY = getattr(torch.autograd.Function.apply, "__func__", torch.autograd.Function.__dict__["apply"])  # a C function from 2.15 on


class SetupApply(torch.autograd.Function):
    @staticmethod
    def forward(x, scale=3):
        return x * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None

    @classmethod
    def apply(cls, *args):
        return super().apply(*args) + 1


@pytest.mark.parametrize("kind", [SuperApply, FuncApply, SetupApply])
def test_own_apply(kind):
    def fn(x):
        return kind.apply(x) + 1

    compiled = framegraft.compile(fn, backend="eager")
    for run in (1, 2):
        x, y = torch.full((2,), float(run), requires_grad=True), torch.full((2,), float(run), requires_grad=True)
        a, b = fn(x), compiled(y)
        a.sum().backward()
        b.sum().backward()
        assert torch.equal(a, b)
        assert torch.equal(x.grad, y.grad)


@differential(*ONE)
def test_own_apply_traced(x):
    return SuperApply.apply(x), FuncApply.apply(x), SetupApply.apply(x, 4)


class Failing(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] == 3:
            raise ValueError("three")
        return x * 2


def always(seen, kwargs=False):
    module = Failing()

    def hook(module, *rest):
        seen.append(len(rest))

    module.register_forward_hook(hook, always_call=True, with_kwargs=kwargs)
    return module


def caught(m, x):
    try:
        return m(x + 1)
    except ValueError as error:
        return str(error), x + 2


def raised(m, x):
    return m(x + 1)


@pytest.mark.parametrize("kwargs", [False, True])
@pytest.mark.parametrize("fn", [caught, raised, None])
@pytest.mark.parametrize("size", [2, 3])
def test_always_called_hook(kwargs, fn, size):
    def outcome(call, module, seen):
        got = []
        for _ in range(2):
            try:
                value = call(torch.ones(size)) if fn is None else call(module, torch.ones(size))
                got.append(str(value))
            except ValueError as error:
                got.append(repr(error))
        return got, seen

    seen, others = [], []
    module, other = always(seen, kwargs), always(others, kwargs)
    target = other if fn is None else fn
    assert outcome(fn or module, module, seen) == outcome(framegraft.compile(target, backend="eager"), other, others)
    assert len(seen) == 2


def noted_failing(hook):
    module = torch.nn.Sequential(Failing())
    module.seen = []
    module[0].register_forward_hook(functools.partial(hook, module.seen), always_call=True)
    return module


def note(seen, module, args, output):
    seen.append((len(args), output))


@differential(lambda: (noted_failing(note), torch.ones(3)))
def test_always_called_hook_of_an_inner_module(m, x):
    try:
        m(x * 2)
    except ValueError as error:
        return str(error), error.__context__, m.seen, x + 1


def test_always_called_global_hook():
    seen = []
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *args: seen.append(1), always_call=True)
    try:
        assert framegraft.compile(caught, backend="eager")(Failing(), torch.ones(3))[0] == "three"
    finally:
        handle.remove()
    assert seen == [1]


def test_always_called_hook_put_on_later():
    seen = []
    compiled, module = framegraft.compile(caught, backend="eager"), Failing()
    compiled(module, torch.ones(3))
    module.register_forward_hook(lambda *args: seen.append(1), always_call=True)
    compiled(module, torch.ones(3))
    assert seen == [1]


@differential(*ONE)
def test_keyword_names(x):
    torch.manual_seed(0)
    return x.clone().uniform_(**{"from": 0, "to": 1}), x.clone().random_(**{"from": -10, "to": 10})


class NotOfClass:
    def __get__(self, obj, owner=None):
        if obj is None:
            raise AttributeError("only of instances")
        return lambda x: x + 1


class OddForward(torch.nn.Module):
    forward = NotOfClass()


@pytest.mark.parametrize("make", [OddForward, lambda: torch.jit.script(torch.nn.Identity())])
def test_forward_that_the_class_does_not_show(make):
    module = make()
    assert torch.equal(framegraft.compile(module, backend="eager")(torch.ones(2)), module(torch.ones(2)))


@differential(*ONE)
def test_partial_of_no_callable(x):
    try:
        functools.partial(3)
    except TypeError as error:
        return str(error), x + 1
    return x


class NotACallable:
    pass


@differential(*ONE)
def test_partial_of_an_object_that_cannot_be_called(x):
    seen = []
    for made in (NotACallable(), [], "a", (1,), x, None, Decorated(lambda y: y), len, NotACallable, lambda y: y, x.sum, [].append):
        try:
            functools.partial(made)
            seen.append(True)
        except TypeError as error:
            seen.append(str(error))
    return seen, x + 1


class EqualToAll(type):
    def __eq__(cls, other):
        return True

    def __hash__(cls):
        return 1

    def __getitem__(cls, key):
        return key * 2


class Item(metaclass=EqualToAll):
    factor = 2

    def scaled(self, x):
        return x * self.factor


class Derivative(Item):
    factor = 3

    def scaled(self, x):
        return super().scaled(x) + super().factor


@differential(*ONE)
def test_metaclass_equal_to_all(x):
    return Item[4], x * Item[3], Item == list, x + 1


@differential(*ONE)
def test_bases_of_a_class_equal_to_all(x):
    return Derivative().scaled(x), isinstance(Item(), Derivative), isinstance(3, Item), issubclass(Item, Derivative)
