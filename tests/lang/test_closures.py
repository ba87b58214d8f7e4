"""Closures, cells and nonlocal."""

import functools

import torch

from .differential import differential


@differential(build=True, graphs=1)
def test_free_variable():
    k, t = 3, torch.ones(3)

    def f(x):
        return x * k + t

    return f


@differential(build=True)
def test_nonlocal_counter():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    return f


@differential(build=True)
def test_two_closures_share_a_cell():
    n = 1

    def bump():
        nonlocal n
        n *= 2
        return n

    def f(x):
        a = x * n
        bump()
        return a, x * n, bump()

    return f


@differential()
def test_cell_variable_of_captured_function(x):
    total = x

    def add(v):
        nonlocal total
        total = total + v
        return total

    add(1)
    y = add(x)
    return y, total, total is y


@differential()
def test_closures_over_loop_variable(x):
    late = [lambda: x * i for i in range(3)]
    early = [lambda i=i: x * i for i in range(3)]
    return [f() for f in late], [f() for f in early]


@differential()
def test_closure_returned(x):
    y = x + 1

    def g(z):
        return y * z

    return g, g(2)


@differential()
def test_returned_closures_share_state(x):
    state = [x]

    def put(v):
        state.append(v)
        return len(state)

    def get():
        return state

    put(1)
    return put, get, get()


@differential(build=True)
def test_nonlocal_tensor_state():
    hidden = torch.zeros(3)

    def f(x):
        nonlocal hidden
        hidden = hidden * 0.5 + x
        return hidden + 1

    return f


@differential()
def test_deeply_nested(x):
    def a():
        v = x + 1

        def b():
            nonlocal v
            v = v * 2

            def c():
                return v + x

            return c

        return b()()

    return a(), a()


@differential()
def test_unbound_free_variable(x):
    def g():
        return later

    try:
        g()
    except NameError as error:
        message = str(error)
    later = x * 2
    return g(), message


@differential()
def test_delete_cell(x):
    v = x

    def g():
        return v

    a = g()
    del v
    try:
        g()
    except NameError:
        return a + 1
    return a


@differential(lambda: (torch.ones(3), [1, 2, 3]))
def test_delete_cell_that_is_empty_by_then(x, items):
    v, seen = x, []

    def g():
        return v

    for i in items:
        try:
            x = x + i
            del v
        except NameError as error:
            seen.append(str(error))
    try:
        return g()
    except NameError as error:
        return x, seen, str(error)


@differential(lambda: (torch.ones(3), [1, 2, 3, 4]))
def test_cell_that_is_empty_every_other_time(x, items):
    v, seen = x, []

    def g():
        return v

    for i in items:
        try:
            x = x + i
            x = x * v
            if i % 2:
                del v
        except NameError as error:
            seen.append(str(error))
            v = x * 2
            x = g()
    return x, seen


@differential(build=True)
def test_cell_with_container():
    seen = {"calls": 0, "last": None}

    def f(x):
        seen["calls"] += 1
        seen["last"] = x * seen["calls"]
        return seen["last"], seen

    return f


@differential()
def test_recursive_closure(x):
    def power(v, n):
        return v if n == 1 else v * power(v, n - 1)

    return power(x, 3)


@differential()
def test_class_cell_and_function_attributes(x):
    def g(v):
        g.calls += 1
        return v * g.calls

    g.calls = 0
    return g(x), g(x), g.calls


@differential()
def test_keyword_defaults_of_a_function_made_behind_a_break_in_a_block(x):
    try:
        scale = (lambda *, k=max(x.dim(), 2), j=3: k * j)()
        return x * scale + (lambda *q, k=scale: k)(1)
    except TypeError:
        return None


@differential(calls=3, graphs=1)
def test_functions_made_at_each_call_wait_in_containers_behind_a_break(x):
    listed = [lambda v: v + k for k in range(3)]
    named = {"twice": lambda v: v * 2, "moved": lambda v, by=3: v - by}
    nested = ([(lambda k: lambda v: v * k)(k) for k in range(2)], lambda v, fn=listed[0]: fn(v))
    print("break")
    for fn in (*listed, *named.values(), *nested[0], nested[1]):
        x = fn(x)
    return x


def scaled_by(n):
    def scale(x, *, power=1):
        return x * n**power

    return scale


@differential(build=True, calls=4)
def test_functions_in_a_list_are_exchanged():
    fns = [scaled_by(2), scaled_by(3)]

    def fn(x):
        y = apply_all(fns, x)
        if fns[0] is fns[1]:
            fns[0].__kwdefaults__["power"] = 2
        fns[1] = scaled_by(5) if len(seen) == 0 else fns[0]
        seen.append(fns[0] is fns[1])
        return y, list(seen)

    seen = []
    return fn


def apply_all(fns, x):
    for fn in fns:
        x = fn(x)
    return x


def shifted_by(n):
    def shift(x, *, power=1):
        return x + n

    return shift


class Caller:
    def __init__(self, fn):
        self.fn = fn

    def call(self, x):
        return self.fn(x)


@differential(calls=3, graphs=1)
def test_functions_made_at_each_call_wait_in_objects_behind_a_break(x):
    k = x.dim()
    part, nested = functools.partial(lambda v, by: v * by, by=3), functools.partial(functools.partial(scaled_by(2), x), power=2)
    caller, method = Caller(lambda v: v + k), Caller(lambda v: v - k).call
    print("break")
    return part(caller.call(x)) + nested() * method(x)


@differential(lambda: (Caller(scaled_by(2)), functools.partial(scaled_by(3), power=2), torch.ones(3)), calls=3, graphs=1)
def test_functions_made_at_each_call_arrive_in_objects(caller, part, x):
    return caller.call(x) + part(x), caller.fn == part.func


@differential(build=True, calls=6)
def test_functions_in_an_object_are_exchanged():
    caller, made = Caller(scaled_by(2)), [scaled_by(2), scaled_by(3), lambda x: x - 1]
    turn = 0

    def fn(x):
        nonlocal turn
        turn += 1
        y = caller.call(x)
        if turn == 4:
            made[1].__kwdefaults__["power"] = 3
        elif turn == 5:
            caller.fn.__code__ = shifted_by(0).__code__
        caller.fn = made[turn % 3]
        return y

    return fn
