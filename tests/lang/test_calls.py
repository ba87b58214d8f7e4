"""Calls: how arguments reach parameters, and what comes back."""

import functools

import torch

from .differential import Kw, differential


def xy():
    return torch.arange(1.0, 4.0), torch.tensor([2.0, -1.0, 0.5])


def scaled(x, by=2, *rest, shift=0.0, **named):
    for value in rest:
        x = x + value
    for name in sorted(named):
        x = x - named[name] * len(name)
    return x * by + shift


def positional_only(a, b=1, /, c=2, *, d=3):
    return a * b + c - d


def recursive(x, n):
    return x if n == 0 else recursive(x + n, n - 1) * 2


def breaking(x, note):
    print(note)
    return x + 1


def no_result(out, x):
    out.append(x)


@differential(xy, graphs=1)
def test_binding(x, y):
    return scaled(x), scaled(x, 3), scaled(x, 1, y, 2), scaled(x, shift=1, ab=2, c=y), scaled(by=4, x=y)


@differential(xy, graphs=1)
def test_star_arguments(x, y):
    args = (x, 2, 1)
    named = {"shift": y, "q": 3}
    return scaled(*args), scaled(*args, *[y], **named), scaled(x, **named), scaled(*(x,), **{"by": 5})


@differential(lambda: (*xy(), 3, Kw(k=4, extra=torch.ones(1))), graphs=1)
def test_own_signature(x, y, /, n=1, *rest, k=2, **named):
    return x * n + y * k, rest, named["extra"] + 1, sorted(named)


@differential(xy, graphs=1)
def test_positional_and_keyword_only(x, y):
    return positional_only(x), positional_only(x, y, d=1), positional_only(x, c=y)


@differential(xy)
def test_wrong_arguments(x, y):
    messages = []
    for call in (
        lambda: positional_only(a=x),
        lambda: positional_only(),
        lambda: positional_only(x, 1, 2, 3),
        lambda: scaled(x, x=y),
        lambda: positional_only(x, q=1),
    ):
        try:
            call()
        except TypeError as error:
            messages.append(str(error))
    return x + y, messages


@differential(xy)
def test_wrong_arguments_uncaught(x, y):
    return positional_only(x, y, 1, 2, 3)


@differential(xy, graphs=1)
def test_lambda_and_nested_function(x, y):
    double = lambda v: v * 2  # noqa: E731

    def add(a, b=y):
        return a + b

    return double(x), add(double(x)), (lambda *a: len(a))(1, 2), add(1, 2)


@differential(xy, graphs=1)
def test_recursion(x, y):
    return recursive(x, 4), y


@differential(xy)
def test_break_inside_callee(x, y):
    a = x * 2
    b = breaking(a, "hello") + breaking(y, "again")
    return a - b


@differential(xy, graphs=1)
def test_function_without_return(x, y):
    out = []
    r = no_result(out, x + y)
    return r, out


@differential(xy, graphs=1)
def test_functions_in_containers(x, y):
    table = {"add": torch.add, "mul": lambda a, b: a * b, "scaled": scaled}
    return [table[name](x, y) for name in ("add", "mul", "scaled")]


@differential(xy, graphs=1)
def test_partial(x, y):
    f = functools.partial(scaled, by=3, shift=1)
    g = functools.partial(f, x)
    return f(x), g(), g(shift=y), functools.partial(torch.clamp, min=0)(y)


def deco(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs) + 1

    return inner


@deco
def decorated(x, y=2):
    return x * y


@differential(xy, graphs=1)
def test_decorated(x, y):
    return decorated(x), decorated(x, y=y), decorated.__name__


def mutable_default(x, seen=[]):  # noqa: B006
    seen.append(len(seen))
    return x * len(seen)


@differential(build=True)
def test_mutable_default():
    def collect(v, seen=[]):  # noqa: B006
        seen.append(len(seen))
        return v * len(seen), seen

    def f(x):
        return collect(x), collect(x + 1)

    return f


@differential(build=True)
def test_default_evaluated_once():
    order = []

    def note(v):
        order.append(v)
        return v

    def f(x):
        def g(a=note(1), *, b=note(2)):
            return x * a + b

        return g(), g(5), list(order)

    return f


@differential(xy)
def test_call_not_callable(x, y):
    n = 3
    return x + y + n()


@differential(xy, graphs=1)
def test_evaluation_order(x, y):
    log = []

    def at(name, value):
        log.append(name)
        return value

    r = scaled(at("x", x), at("by", 2), *at("rest", [1]), shift=at("shift", 1), **at("named", {"z": 1}))
    d = {at("k1", 1): at("v1", 2), at("k2", 3): at("v2", 4)}
    return r, d, log, y


@differential(xy, graphs=1)
def test_arguments_that_do_not_fit_a_function_made_here(x, y):
    def inner(a, b):
        return a

    class_like = lambda a, *, k: a  # noqa: E731
    told = []
    for call in (lambda: inner(1), lambda: inner(1, 2, 3), lambda: inner(1, 2, c=3), lambda: class_like(1)):
        try:
            call()
        except TypeError as error:
            told.append(str(error))
    return x + y, told


def _bound_elsewhere():
    class Meta(type):
        def __call__(cls, *args):
            return "the metaclass's"

    class Made(metaclass=Meta):
        def __init__(self, k):
            self.k = k

    class Number(int):
        def __add__(self, other):
            return "the subclass's"

    class Items(list):
        def __len__(self):
            return 77

    class Text(str):
        def __mul__(self, n):
            return "the subclass's"

    one = super(Meta, Made).__call__(3)
    return (torch.ones(2), type.__call__.__get__(Made), super(Number, Number(3)).__add__, list.__len__.__get__(Items([1])),
            str.__mul__.__get__(Text("ab")), object.__getattribute__.__get__(one), (3).__sub__)


@differential(_bound_elsewhere)
def test_slots_of_a_base_that_were_bound_outside(x, make, add, length, times, attribute, minus):
    return x * make(2).k, add(4), length(), times(2), attribute("k"), minus(1)
