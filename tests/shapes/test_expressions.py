"""Shape guards as the native core runs them, against the same expressions in Python."""

import operator
import random

import pytest
import sympy
import torch
from torch.utils._sympy.functions import FloorDiv, Max, Min, PythonMod

import framegraft
from framegraft import _native
from framegraft.model.source import local
from framegraft.native.calibrate import ensure_calibrated
from framegraft.tensor.expressions import NUMBER, SIZE, STRIDE, ShapeExpression, Slot

SYMBOLS = sympy.symbols("a b c", integer=True)
SLOTS = dict(zip(SYMBOLS, (Slot(local(0, "x"), SIZE, 1), Slot(local(1, "n"), NUMBER, 0), Slot(local(0, "x"), STRIDE, 0)), strict=True))


def expression(rng, depth):
    if depth == 0:
        return rng.choice([*SYMBOLS, sympy.Integer(rng.randint(-5, 9))])
    left, right = expression(rng, depth - 1), expression(rng, depth - 1)
    return rng.choice([operator.add, operator.sub, operator.mul, FloorDiv, PythonMod, Max, Min])(left, right)


def truth(rng):
    relation = rng.choice([sympy.Eq, sympy.Ne, sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge])
    made = relation(expression(rng, 2), expression(rng, 1))
    return rng.choice([made, sympy.Not(made), sympy.Or(made, sympy.Gt(SYMBOLS[0], 2)), sympy.And(made, sympy.Gt(SYMBOLS[1], 0))])


def program(made):
    positions = {0: 0, 1: 1}
    slots = tuple((positions[s.source.key[0]], s.what, s.dim) for s in made.slots)
    check = ("SHAPE", (slots, made.code, made.fn), 0)
    return _native.GuardProgram([(-1, "ARG", 0, []), (-1, "ARG", 1, []), (-1, "NONE", None, [check])])


def in_python(made, x, n):
    try:
        return bool(eval(made.text, {"L": {"x": x, "n": n}, "math": __import__("math")}))
    except ZeroDivisionError:
        return False


def anchor():
    pass


@pytest.mark.parametrize("seed", range(80))
def test_native_agrees_with_python(seed):
    ensure_calibrated()
    rng = random.Random(seed)
    try:
        wanted = truth(rng)
    except ZeroDivisionError:
        return
    if wanted in (sympy.true, sympy.false):
        return
    made = ShapeExpression.of(wanted, SLOTS, {})
    guard = program(made)
    for _ in range(20):
        x, n = torch.empty(2, rng.randint(0, 6), 3)[:, :, : rng.randint(1, 3)], rng.randint(-9, 9)
        for _ in range(2):  # the second time by the memo
            expected, found = in_python(made, x, n), guard.check((x, n), anchor)
            # Python may not come to a division by zero that the program, which computes all parts, takes for a failure.
            divides = "//" in made.text or "%" in made.text
            assert found == expected or divides and expected and not found, (made.text, x.shape, x.stride(), n)


@pytest.mark.parametrize("n, holds", [(5, True), (-5, False), (1 << 62, False), (1 << 70, False), (5.0, False), (True, False), ("5", False)])
def test_what_is_no_number_of_64_bits_fails(n, holds):
    ensure_calibrated()
    guard = program(ShapeExpression.of(sympy.Gt(SYMBOLS[1] * 4, 0), SLOTS, {}))
    assert guard.check((torch.ones(2, 2), n), anchor) == holds


def test_fewer_dimensions_and_no_tensor():
    ensure_calibrated()
    guard = program(ShapeExpression.of(sympy.Gt(SYMBOLS[0], 1, evaluate=False), SLOTS, {}))
    assert guard.check((torch.ones(2, 2), 0), anchor)
    assert not guard.check((torch.ones(2), 0), anchor) and not guard.check((3, 0), anchor)


@pytest.mark.parametrize("payload", [
    None, (), ((), (), None), (((0, 1, 0),), ((0, 1),), None), (((0, 1, 0),), ((0, 0), (2, 0)), None), (((0, 9, 0),), ((0, 0),), None),
    (((5, 1, 0),), ((0, 0),), None), (((0, 1, -1),), ((0, 0),), None), ((3,), ((0, 0),), None), ((), ((1, 1), (99, 0)), None), ((), (), 3),
])
def test_wrong_programs_are_refused(payload):
    with pytest.raises((TypeError, ValueError)):
        _native.GuardProgram([(-1, "ARG", 0, []), (-1, "NONE", None, [("SHAPE", payload, 0)])])


def test_symbols_of_sizes_are_found_among_the_inputs():
    """What is guarded on a sum lets one size be written with the others, and compilers need those: inductor asserts that."""
    seen = []

    def backend(gm, inputs):
        extents = []
        for node in gm.graph.find_nodes(op="placeholder"):
            value = node.meta["example_value"]
            extents += (*value.shape, *value.stride()) if isinstance(value, torch.Tensor) else (value,)
        found = [e.node.expr for e in extents if isinstance(e, torch.SymInt)]
        seen.append({s for e in found for s in e.free_symbols} <= {e for e in found if e.is_symbol})
        return gm.forward

    def f(x, n):
        for size in x.shape:
            n = n + size
        return x.clone().mul_(0.5), f"{n}", n

    compiled = framegraft.compile(f, backend=backend)
    for shape, n in (((3, 7, 4), 3), ((3, 7, 4), 8), ((3, 5, 4), 0), ((2, 7, 4), 3), ((2, 9, 4), 1)):
        x = torch.randn(shape)
        (got, *rest), (expected, *others) = compiled(x, n), f(x, n)
        assert torch.equal(got, expected) and rest == others
    assert all(seen)


def test_whole_number_to_the_power_of_a_size():
    """int ** SymInt (torch/__init__.py: SymInt.__rpow__), as long as it has 64 bits; others are captured for each size."""
    assert shapes_of(lambda x: (x * 2 ** x.shape[0], 3 ** x.shape[0], x.new_ones(pow(2, x.shape[0] // 2))), range(3, 8)) <= 2
    assert shapes_of(lambda x: (2 ** (x.shape[0] - 1), x.shape[0], (-2) ** x.shape[0], 0 ** x.shape[0], True ** x.shape[0]), range(3, 6)) == 3
    assert shapes_of(lambda x: (x + 1, 2 ** x.shape[0], 10 ** x.shape[0]), (3, 5, 17, 18, 40, 63, 70)) == 6


def shapes_of(fn, sizes):
    """How many captures calls with tensors of these sizes take, each with what eager mode gives, type and value."""
    compiled, counts = framegraft.compile(fn, backend="eager"), 0
    for size in sizes:
        x = torch.arange(float(size))
        got, expected = compiled(x), fn(x)
        assert all(type(g) is type(e) and (torch.equal(g, e) if isinstance(e, torch.Tensor) else g == e) for g, e in zip(got, expected, strict=True))
        counts = len(framegraft._debug_get_cache_entry_list(fn))
    return counts
