"""Operators of two operands of unlike kinds, in `try` and `with`, where what the trace raises is not left to eager mode."""

import collections
from fractions import Fraction

import numpy as np
import pytest
import torch

import framegraft
from framegraft.bytecode.versions import VERSION

from .differential import differential


class Text(str):
    pass


class Bytes(bytes):
    pass


class Pair(tuple):
    pass


class Items(list):
    pass


class ReflectedItems(list):
    def __radd__(self, other):
        return "radd of a list"


class DecliningItems(list):
    def __add__(self, other):
        return NotImplemented


class Reflected(int):
    def __radd__(self, other):
        return "radd"

    def __rmul__(self, other):
        return "rmul"


class Compared(int):
    __hash__ = int.__hash__

    def __eq__(self, other):
        return "eq"

    def __gt__(self, other):
        return "gt"


class Declining:
    def __add__(self, other):
        return NotImplemented

    def __radd__(self, other):
        return NotImplemented


class Two:
    def __index__(self):
        return 2


Named = collections.namedtuple("Named", "a b")

OPERANDS = """'a'; Text('b'); b'b'; b'%s'; bytearray(b'z'); Bytes(b'b'); [1]; (1,); Pair((1,)); Items([1]); ReflectedItems([1]); DecliningItems([1])
Named(1, 2); x.shape; torch.Size([3]); 2; True; 1.5; None; Reflected(5); Compared(1); np.int64(2); np.float32(2); np.prod((2, 3)); Fraction(1, 2)
Declining(); Two(); {1: 2}; {1}; collections.deque([1]); collections.OrderedDict(a=1); Items; x; np.arange(2)"""
OPERANDS = [operand.strip() for operand in OPERANDS.replace("\n", ";").split(";")]


def told(fn, *args):
    """How a call ended, with the type of what it gave."""
    try:
        result = fn(*args)
    except Exception as error:
        return type(error), str(error)
    return type(result), repr(result)


def check(fn, *args):
    framegraft.reset()
    wanted = told(fn, *args)
    compiled = framegraft.compile(fn, backend="eager")
    assert [told(compiled, *args), told(compiled, *args)] == [wanted, wanted], fn


def written(body, **names):
    """The function of x with that body, among this file's classes."""
    namespace = {**globals(), **names}
    exec("def f(x, *args):\n" + body, namespace)
    return namespace["f"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sign", ["+", "*", "/", "%", "-", "|", "==", "<"])
@pytest.mark.parametrize("left", OPERANDS)
def test_operands_in_a_handler(left, sign):
    for right in OPERANDS:
        check(written(f"""
    y = x + 1
    try:
        r = {left} {sign} {right}
    except TypeError as error:
        r = 'lost', str(error)
    return r
"""), torch.ones(3))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sign", ["+=", "*=", "%=", "|="])
@pytest.mark.parametrize("left", ["[1]", "Items([1])", "(1,)", "'a'", "{1: 2}", "{1}", "collections.deque([1])", "ReflectedItems([1])"])
def test_in_place(left, sign):
    for right in OPERANDS:
        check(written(f"""
    y = x + 1
    held = r = {left}
    try:
        r {sign} {right}
    except TypeError as error:
        r = 'lost', str(error)
    return r, held, r is held
"""), torch.ones(3))


@pytest.mark.parametrize("operand", [Text("b"), Bytes(b"b"), np.int64(2), np.float32(2), Reflected(5), Compared(1), Pair((1,)), Items([1])], ids=repr)
def test_operands_that_are_arguments(operand):
    for left in ("'a'", "b'b'", "[1]", "(1,)", "1.5", "True", "1"):
        for sign in ("+", "*", "==", "<"):
            for pair in (f"{left} {sign} args[0]", f"args[0] {sign} {left}"):
                body = f"\n    y = x + 1\n    with torch.no_grad():\n        try:\n            r = {pair}\n        except TypeError as error:\n"
                check(written(body + "            r = str(error)\n    return r\n"), torch.ones(3), operand)


REPEATED = [Two() for _ in range(1)]


@differential()
def test_sequences_with_their_own_kind(x):
    try:
        r = [1] + Items([2]), (1,) + Pair((2,)), [1] * REPEATED[0], "ab" * REPEATED[0], x.shape + (1,)
    except TypeError:
        r = "lost"
    return x + 1, r


@pytest.mark.parametrize("text", ["'%s' % x", "'a%r' % x", "'%s %s' % (x, 1)", "'%(k)s' % {'k': x}", "'%s' % [x]", "b'%b' % x", "'{}'.format([x])",
                                  "f'{[x]}'", "str((x,))", "'%s' % x.numpy()", "operator.mod('%s', x)", "str.__mod__('%s', x)", "Text('%s') % x"])
def test_tensors_in_texts(text):
    check(written(f"\n    import operator\n    y = x + 1\n    try:\n        return {text}\n    except TypeError as error:\n        return str(error)\n"),
          torch.ones(3))
    if "[" not in text and "(" not in text and "{" not in text and "b'" not in text and "Text" not in text:
        assert "tensor_item" in str(framegraft.break_reasons())


class Filled(dict):
    def __missing__(self, key):
        return "m"

    def __getitem__(self, key):
        return super().__getitem__(key)


class Missing(dict):
    def __missing__(self, key):
        return "missing " + key


class Failing(dict):
    def __missing__(self, key):
        raise LookupError(key)


class Ordered(collections.OrderedDict):
    def __missing__(self, key):
        return "ordered"


LOOKUPS = ["Filled()['z']", "dict.__getitem__(Filled(), 'z')", "Missing()['z']", "Missing().__getitem__('z')", "dict.__getitem__(Missing(), 'z')",
           "collections.defaultdict(int).__getitem__('z')", "collections.Counter().__getitem__('z')", "dict.__getitem__(collections.Counter(), 'z')",
           "Failing()['z']", "dict.__getitem__(Failing(), 'z')", "Failing().__getitem__('z')", "Ordered().__getitem__('z')",
           "collections.OrderedDict().__getitem__('z')", "{}.__getitem__('z')", "Filled(z=1)['z']"]
if VERSION.name != "3.10":  # where the text names the class of the object, or the method's, depending on how it is called
    LOOKUPS.append("Missing().__getitem__('z', 1)")


@pytest.mark.parametrize("expression", LOOKUPS)
def test_missing_keys(expression):
    head = "\n    y = x + 1\n    try:\n        return "
    check(written(head + expression + "\n    except (KeyError, TypeError) as error:\n        return 'lost', str(error)\n"), torch.ones(1))
    check(written(head + expression + "\n    finally:\n        y = x\n"), torch.ones(1))
    check(written("\n    y = x + 1\n    with torch.no_grad():\n        return " + expression + "\n"), torch.ones(1))


CALLS = ["max(1, 2, default=3)", "min(1, 2, default=3, key=abs)", "max(x.shape[0], 2, default=3)", "max(1, 2, key=abs)", "max([], default=3)",
         "collections.OrderedDict(a=1).popitem(1, 2)", "collections.OrderedDict(a=1).popitem(lasst=1)", "collections.OrderedDict(a=1).popitem(last=0)",
         "range(4).__reversed__(1)", "list(range(4).__reversed__())", "{}.pop([])", "{}.pop([], 1)", "{1: 2}.pop([])",
         "collections.OrderedDict().pop([])", "collections.OrderedDict().pop(key=[])", "Missing().pop([])", "collections.OrderedDict(a=1).pop('a')",
         "collections.OrderedDict(a=1).pop('b', 3)", "Missing(a=1).pop('b')"]


@pytest.mark.parametrize("expression", CALLS)
def test_arguments_that_do_not_fit(expression):
    check(written(f"\n    y = x + 1\n    try:\n        return {expression}\n    except (TypeError, KeyError) as error:\n        return repr(error)\n"),
          torch.ones(3))
    check(written(f"\n    y = x + 1\n    return {expression}\n"), torch.ones(3))


@differential()
def test_keyword_defaults_given_and_changed(x):
    def g(x, *, k=1):
        return x + k

    g.__kwdefaults__ = {"k": 2}
    first = g(x)
    g.__kwdefaults__["k"] = 3
    return first, g(x)


@differential()
def test_keyword_defaults_changed_by_another_name(x):
    def g(x, *, k=1):
        return x + k

    given = {}
    g.__kwdefaults__ = given
    given["k"] = 5
    first = g(x)
    given.clear()
    try:
        return first, g(x)
    except TypeError as error:
        return first, str(error)




@pytest.mark.parametrize("expression", [f"np.int64(2) {sign} {text}" for sign in "+-" for text in ("'a'", "b'a'")])
def test_errors_that_their_arguments_do_not_make(expression):
    check(written(f"\n    y = x + 1\n    try:\n        return {expression}\n    except TypeError as error:\n        return str(error)\n"), torch.ones(1))
