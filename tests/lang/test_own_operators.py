"""Operators and identities of what is easily taken for something simpler: exceptions, cells, modules, tuples, cycles, zeros."""

import builtins
import collections
import copy
import math
import types

import pytest
import torch

import framegraft


class Own(Exception):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 3

    def __lt__(self, other):
        return "lt"

    def __add__(self, other):
        return "add"

    def __iadd__(self, other):
        return "iadd"

    def __neg__(self):
        return "neg"

    def __len__(self):
        return 5

    def __getitem__(self, key):
        return key

    def __contains__(self, item):
        return item == 1

    def __iter__(self):
        return iter([1])

    def __call__(self):
        return "called"

    def __index__(self):
        return 1

    def __format__(self, spec):
        return "format"

    def __repr__(self):
        return "Own"

    def __getattr__(self, name):
        return name


EXPRESSIONS = """e == 1; 1 == e; e != 2; e < 1; e + 1; 1 + e; len(e); e[2]; 1 in e; list(e); e(); [1, 2][e]; -e; f"{e}"; repr(e); hash(e); {e: 1}[e]
e.foo; e in [1]; [e] == [1]; (e,) == (1,); bool(e); [*e]; e > 1; callable(e); e.args; [1].count(e)""".replace("\n", ";").split(";")


def run(fn, *args):
    try:
        return fn(torch.ones(2), *args)[1:]
    except Exception as error:
        return type(error), str(error)


def check(fn, *args):
    wanted, got = run(fn, *args), run(framegraft.compile(fn, backend="eager"), *args)
    assert repr(wanted) == repr(got)


@pytest.mark.parametrize("expression", [e.strip() for e in EXPRESSIONS])
def test_exception_with_operators(expression):
    names = {"Own": Own}
    exec(f"def f(x):\n    e = Own(1)\n    return x + 1, {expression}\n", names)
    check(names["f"])


def cell(value):
    return (lambda: value).__closure__[0]  # type: ignore[index]


def test_cells_compare_by_what_they_hold():
    a, b = cell(2), cell(2)

    def f(x):
        c = cell(2)
        return x + 1, a == b, a != b, a < cell(3), c == cell(2)

    check(f)


def test_builtin_set_by_a_callee():
    def f(x):
        seen, old = [len(range(7))], builtins.len

        def change():
            builtins.len = lambda values: 4

        change()
        try:
            seen.append(len(range(7)))
        finally:
            builtins.len = old
        return x + 1, seen

    check(f)


def test_module_set_as_attribute_and_as_global():
    module = types.ModuleType("probed")
    exec("g = 1\ndef get(): return g\ndef put(v):\n    global g\n    g = v\n", module.__dict__)

    def f(x):
        module.g = 5
        seen = [module.get(), module.g]
        module.put(6)
        seen += [module.g, module.get()]
        module.g = 7
        seen.append(module.get())
        module.put(8)
        return x + 1, seen, module.get(), module.g

    check(f)


def test_tuples_that_stay_the_same_object():
    class Sub(tuple):
        pass

    def f(x):
        t, s, empty = (1, 2), Sub((1, 2)), ()
        same = (t[:] is t, tuple(t) is t, t * 1 is t, t + () is t, () + t is t, copy.copy(t) is t, copy.deepcopy(t) is t,
                s[:] is s, s * 1 is s, type(s + ()), t[0:0] is empty, t * 0 is empty, tuple([]) is empty)
        return x + 1, same

    check(f)


def test_cycles_through_what_cannot_change():
    class Holder:
        def __repr__(self):
            return repr(self.value)

    class Sub(tuple):
        pass

    def f(x, make):
        holder = Holder()
        made = make(holder)
        holder.value = made
        framegraft.graph_break()
        return x + 1, next(iter(made)).value is made, type(made)

    for make in (lambda h: {h}, lambda h: (h,), lambda h: Sub((h,)), lambda h: frozenset([h]), lambda h: [h]):
        check(f, make)


def test_slices_that_are_refused():
    def f(x):
        seen, items = [], [1, 2, 3]
        for key, values in ((slice(None, None, 2), [1]), (slice(None, None, 0), [1]), (slice(0, 1), [7, 8])):
            try:
                items[key] = values
            except ValueError as error:
                seen.append(str(error))
        for sequence in ([1], (1,), "a", range(3)):
            try:
                sequence[::0]
            except ValueError as error:
                seen.append(str(error))
        return x + 1, seen, items

    check(f)


def test_order_of_ordered_dicts():
    a, b = collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)
    check(lambda x: (x + 1, a == b, a != b, a == dict(b), dict(b) == a, a.__eq__(b), a.__eq__(1), [a] == [b]))


def test_equality_that_shortens_the_lists():
    def f(x):
        class Left:
            def __eq__(self, other):
                second.clear()
                return NotImplemented

        class Right:
            def __eq__(self, other):
                first.clear()
                return NotImplemented

        first, second = [Left()], [Right()]
        return x + 1, first == second

    check(f)


def test_in_place_operators_of_subclasses():
    class Items(list):
        pass

    class Table(dict):
        pass

    def f(x, items, table):
        first, second = items, table
        items *= 2
        items += (3,)
        table |= {"b": 2}
        return x + 1, type(items), items is first, type(table), table is second, items, table

    check(f, Items([1]), Table(a=1))


@pytest.mark.parametrize("expression", "int(v); math.floor(v); v ** 2; v ** v; math.sin(v); int(v * 1e10); f'{v}'; math.copysign(1, v)".split("; "))
def test_floats_that_have_no_such_number(expression):
    names = {"math": math}
    exec(f"def f(x, v):\n    try: r = {expression}\n    except Exception as error: r = repr(error)\n    return x + 1, r\n", names)
    captured = framegraft.compile(names["f"], backend="eager")
    for value in (1.5, 2.5, 3.5, math.nan, math.inf, 1e300, -2.5, 0.0, -0.0, -math.inf, 2.0**53, 1e-300, 3.0):
        assert repr(run(names["f"], value)) == repr(run(captured, value)), value


def test_class_attributes_of_tensors():
    class Tagged(torch.Tensor):
        tag, tags = "t", [1]

    check(lambda x: (x + 1, type(x.__doc__), x.as_subclass(Tagged).tag, x.as_subclass(Tagged).tags))


def test_copy_of_a_subclass_of_frozenset():
    class Sub(frozenset):
        pass

    check(lambda x, s: (x + 1, s.copy() is s, type(s.copy()), id(s.copy()) == id(s)), Sub([1]))
    check(lambda x, s: (x + 1, s.copy() is s, type(s.copy())), frozenset([1]))


def test_nan_is_found_in_lists():
    def f(x):
        n = float("nan")
        items = [n, 1.0, n]
        framegraft.graph_break()
        return x + 1, items.index(n), n in items, [n] == [n], items.count(n)

    check(f)


def test_super_takes_what_self_is_now():
    class Base:
        def name(self):
            return type(self).__name__

    class Derived(Base):
        def name(self, other):  # type: ignore[override]
            self = other
            return super().name()

    class Other(Derived):
        pass

    check(lambda x: (x + 1, Derived().name(Other())))
