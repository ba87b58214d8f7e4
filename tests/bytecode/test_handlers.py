"""Handlers that begin or end right at an operation which may run a frame of Python code within the evaluator's own."""

import types

import pytest

from framegraft.bytecode.decode import decode
from framegraft.bytecode.encode import encode
from framegraft.bytecode.ir import ExceptionHandler, Instruction

from .canon import again

BAD = [False]  # no attribute of a class, whose change would take the special forms away


def check(*args, **kwargs):
    if BAD[0]:
        raise ValueError("bad")


class Thing:
    """Each of its special methods raises ValueError when told to."""

    def check(self, *args, **kwargs):
        if BAD[0]:
            raise ValueError("bad")
        return self

    def __getitem__(self, index):
        return self.check()

    @property
    def property(self):
        return self.check()

    @property.setter
    def property(self, value):
        self.check()

    __call__ = __add__ = __lt__ = __enter__ = check

    def __format__(self, spec):
        return str(self.check() is self)

    def __iter__(self):
        yield 1
        self.check()

    def __await__(self):
        yield 1
        self.check()


class Seen(Thing):
    def __getattribute__(self, name):
        if name == "seen":
            Thing.check(self)
            return 1
        return object.__getattribute__(self, name)


class Made(Thing):
    def __init__(self, other=None):
        self.check()


def call(x):
    try:
        return x.check()
    except ValueError:
        return "caught"


def call_of_an_instance(x):
    try:
        return x()
    except ValueError:
        return "caught"


def call_of_a_class(x):
    try:
        return Made() is None
    except ValueError:
        return "caught"


def call_with_a_keyword(x):
    try:
        return x.check(k=1)
    except ValueError:
        return "caught"


def call_with_stars(x, args=()):
    try:
        return check(*args)
    except ValueError:
        return "caught"


def call_with_two_stars(x, args=(), kwargs={"k": 1}):
    try:
        return check(*args, **kwargs)
    except ValueError:
        return "caught"


def item(x):
    try:
        return x[0]
    except ValueError:
        return "caught"


def attribute_of_a_property(x):
    try:
        return x.property
    except ValueError:
        return "caught"


def attribute_by_getattribute(x):
    try:
        return x.seen
    except ValueError:
        return "caught"


def store(x):
    try:
        x.property = 1
    except ValueError:
        return "caught"


def comparison(x):
    try:
        return x < 1
    except ValueError:
        return "caught"


def sum_of_two(x):
    try:
        return x + 1
    except ValueError:
        return "caught"


def formatted(x):
    try:
        return f"{x:>3}"
    except ValueError:
        return "caught"


def loop(x):
    generator = x.__iter__()
    total = 0
    try:
        for i in generator:
            total += i
    except ValueError:
        return "caught"
    return total


def delegation(x):
    try:
        yield from x
    except ValueError:
        return "caught"


async def waiting(x):
    try:
        await x
    except ValueError:
        return "caught"


PICKED = {  # which operation the handler begins or ends at: its name, and the operand where there are others of the name
    call: ("CALL", None), call_of_an_instance: ("CALL", None), call_of_a_class: ("CALL", None), call_with_a_keyword: ("CALL", None),
    call_with_stars: ("CALL_EX", None), call_with_two_stars: ("CALL_EX", None), item: ("APPLY", None),
    attribute_of_a_property: ("LOAD_ATTR", "property"), attribute_by_getattribute: ("LOAD_ATTR", "seen"),
    store: ("STORE_ATTR", None), comparison: ("APPLY", None), sum_of_two: ("APPLY", None), formatted: ("FORMAT_VALUE", None), loop: ("FOR_ITER", None),
    delegation: ("SEND", None), waiting: ("SEND", None),
}


def changed(original, cover):
    """``original`` with only the picked operation covered by its first handler; or with all but that one."""
    instructions = decode(original.__code__)
    name, arg = PICKED[original]
    picked = next(i for i in instructions if i.op == name and arg in (None, i.arg) and i.handler is not None)
    first = picked.handler
    for inst in instructions:
        if inst.handler is first and (inst is picked) != cover:
            inst.handler = None
    code = encode(instructions, original.__code__)
    again(code)
    return types.FunctionType(code, original.__globals__, argdefs=original.__defaults__)


def outcome(fn, x):
    try:
        found = fn(x)
        if isinstance(found, (types.GeneratorType, types.CoroutineType)):
            try:
                while True:
                    found.send(None)
            except StopIteration as stop:
                found = stop.value
        return found
    except ValueError:
        return "raised"


@pytest.mark.parametrize("bad_at", [0, 40])  # before and after the interpreter has put special forms in place
@pytest.mark.parametrize("cover", [True, False])
@pytest.mark.parametrize("original", PICKED, ids=lambda fn: fn.__name__)
def test_a_handler_of_one_operation(original, cover, bad_at):
    fn = changed(original, cover)
    BAD[0] = False
    x = Seen() if original is attribute_by_getattribute else Thing()
    for _ in range(bad_at):
        assert outcome(fn, x) not in ("caught", "raised")
    BAD[0] = True
    assert outcome(fn, x) == ("caught" if cover else "raised")
    assert outcome(fn, x) == ("caught" if cover else "raised")


def test_the_stack_has_room_for_what_a_handler_begins_with():
    """Its first operation may push nothing on top of the exception and the place where it was raised."""

    def original():
        raise

    instructions = decode(original.__code__)
    leaving = Instruction("RERAISE", 1)
    instructions[0].handler = ExceptionHandler(leaving, 0, True)
    assert encode([*instructions, leaving], original.__code__).co_stacksize >= 2
