"""Special methods that give something else than the interpreter wants of them: converted or refused as in eager mode."""

import math
import operator
import warnings

import pytest
import torch

import framegraft


class Int(int):
    pass


class Text(str):
    pass


class Hooks:
    def __init__(self, told):
        self.told = told

    def tell(self, *args):
        return self.told

    __int__ = __float__ = __complex__ = __bytes__ = __index__ = __len__ = __bool__ = __repr__ = __str__ = __format__ = tell
    __hash__ = __iter__ = __contains__ = __round__ = __abs__ = tell  # type: ignore[assignment]


NAMES = {"operator": operator, "math": math, "torch": torch}
EXPRESSIONS = """int(v); float(v); complex(v); bytes(v); operator.index(v); len(v); bool(v); repr(v); str(v); f"{v}"; f"{v!r}"; "%s" % v; hash(v)
iter(v); 1 in v; round(v); abs(v); [1, 2, 3][v]; range(v); hex(v); math.floor(v); [*v]; [1] * v; "a" * v; chr(v); {v: 1}; divmod(v, 1)
list(range(5))[v:]; format(v); max(0, v); x * float(v); a if (a := v) else 0""".replace("\n", ";").split(";")
TOLD = [1, True, Int(2), 1.0, "a", Text("b"), None, -1, 10**30, b"a", [1]]


def shown(value):
    try:
        return repr(value)
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("expression", [e.strip() for e in EXPRESSIONS])
def test_hooks_that_lie(expression):
    names = dict(NAMES)
    catch = "except Exception as error: r = (type(error).__name__, str(error).split(chr(10))[0])"
    exec(f"def f(x, v):\n    try: r = {expression}\n    {catch}\n    return x + 1, r\n", names)
    f, x = names["f"], torch.ones(1)
    captured = framegraft.compile(f, backend="eager")
    with warnings.catch_warnings(), framegraft.config.patch(cache_size_limit=100):
        warnings.simplefilter("ignore")
        for told in TOLD:
            wanted, got = f(x, Hooks(told))[1], captured(x, Hooks(told))[1]
            assert (type(wanted), shown(wanted)) == (type(got), shown(got)), told
