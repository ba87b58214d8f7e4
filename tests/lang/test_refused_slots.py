"""Special methods that a class sets to None, or to something else than a function: each slot has its own way with that."""

import functools
import operator

import pytest
import torch

import framegraft


class Both:
    def __len__(self):
        return 2

    def __getitem__(self, i):
        return [0, 1][i]


class Answers:
    """Called without the object: it is no descriptor."""

    def __init__(self, make):
        self.make = make

    def __call__(self, *args):
        return self.make()


USES = {
    "__iter__": (list, iter, max, lambda o: 1 in o, lambda o: [*o], lambda o: list(zip(o, o))),
    "__len__": (len, bool, operator.not_, lambda o: 1 if o else 2),
    "__bool__": (bool, operator.not_, lambda o: o and 1, lambda o: any([o])),
    "__contains__": (lambda o: 1 in o,),
    "__reversed__": (lambda o: list(reversed(o)),),
    "__setitem__": (lambda o: operator.setitem(o, 0, 1),),
    "__delitem__": (lambda o: operator.delitem(o, 0),),
    "__eq__": (lambda o: o == 1, lambda o: 1 == o, lambda o: o in [1], lambda o: [o] == [1]),
    "__hash__": (lambda o: o in {1: 2},),
    "__int__": (int,), "__index__": (int, operator.index, lambda o: [1, 2, 3][o]), "__float__": (float,), "__complex__": (complex,),
    "__str__": (str, "{}".format, lambda o: f"{o}"), "__repr__": (repr, str, lambda o: str([o])), "__format__": (lambda o: f"{o}",),
}
ANSWERS = {"__iter__": lambda: iter("ab"), "__len__": lambda: 3, "__bool__": lambda: False, "__reversed__": lambda: iter("ba"),
           "__hash__": lambda: 7, "__index__": lambda: 1, "__int__": lambda: 5, "__float__": lambda: 2.5, "__complex__": lambda: 2j,
           "__str__": lambda: "s", "__repr__": lambda: "r", "__format__": lambda: "f"}


def none(make):
    return None


def static(make):
    return staticmethod(Answers(make))


def partial_method(make):
    return functools.partialmethod(lambda self, *args: make())


def told(call):
    try:
        result = call()
    except Exception as error:
        return type(error), str(error)
    return type(result[-1]) if " object at 0x" in str(result) else str(result)


@pytest.mark.parametrize("kind", [none, static, partial_method, Answers])
@pytest.mark.parametrize("base", [object, Both, list, dict, int, str])
@pytest.mark.parametrize("name", USES)
def test_slots(name, base, kind):
    one = type("Own", (base,), {name: kind(ANSWERS.get(name, lambda: True))})()
    for use in USES[name]:
        def f(x, use=use):
            return x + 1, use(one)

        framegraft.reset()
        with framegraft.config.patch(raise_internal_errors=True):
            compiled = framegraft.compile(f, backend="eager")
            assert told(lambda: compiled(torch.ones(2))) == told(lambda: f(torch.ones(2)))  # noqa: B023


class Text(str):
    pass


class Count(int):
    pass


@pytest.mark.parametrize(("use", "value"), [
    (int, Text("abc")), (float, Text("abc")), (complex, Text("abc")), (lambda o: f"{o:zz}", Count(3)), (lambda o: format(o, "d"), Text("a")),
])
def test_errors_of_values_in_c(use, value):
    def f(x):
        try:
            return x + use(value)
        except ValueError as error:
            return x, str(error)

    with framegraft.config.patch(raise_internal_errors=True):
        assert str(framegraft.compile(f, backend="eager")(torch.ones(2))) == str(f(torch.ones(2)))
