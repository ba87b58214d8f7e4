"""Rules of the jumps."""

from __future__ import annotations

import itertools

from ..bytecode.flow import NO_FALLTHROUGH
from ..bytecode.ir import Instruction
from ..model.dispatch import TENSOR
from ..model.value import ConstantVariable, SymbolicVariable, TensorVariable, VariableTracker
from ..semantics import core
from .frame import InstructionTranslator as Tx
from .frame import rule
from .state import realize


@rule("JUMP")
def jump(tx: Tx, inst: Instruction) -> None:
    tx.jump(inst.target)


@rule("POP_JUMP_IF")
def pop_jump_if(tx: Tx, inst: Instruction) -> None:
    value = realize(tx.pop(), tx.state)
    kind = inst.arg
    if kind in ("none", "not_none"):
        is_none = isinstance(value, ConstantVariable) and value.value is None
        taken = is_none if kind == "none" else not is_none
    else:
        expected = _expected(tx, inst, value) if type(value) in (TensorVariable, SymbolicVariable) else None
        taken = (core.truth(tx, value) if expected is None else expected) is (kind == "true")
    if taken:
        tx.jump(inst.target)


def _expected(tx: Tx, inst: Instruction, value: VariableTracker) -> bool | None:
    """The truth of what only the data can tell, where the branch for the other one does nothing but raise.

    So ``assert (x > 0).all()`` stays in one graph, which checks that it holds.
    """
    assert inst.target is not None
    taken = _only_raises(tx.instructions, inst, inst.index + 1)
    if taken is _only_raises(tx.instructions, inst, inst.target.index):
        return None
    wanted = taken is (inst.arg == "true")
    return wanted if TENSOR.assume(tx, value, wanted) else None


def _only_raises(instructions: list[Instruction], branch: Instruction, index: int) -> bool:
    """Whether the way that starts at ``index`` ends, without another branch, in a ``raise`` that leaves what surrounds it."""
    for inst in itertools.islice(instructions, index, None):
        if inst.op == "RAISE_VARARGS":
            return inst.arg > 0 and _handler(inst) is _handler(branch)
        if inst.target is not None or inst.op in NO_FALLTHROUGH or inst.op in ("YIELD_VALUE", "SEND"):
            return False
    return False


def _handler(inst: Instruction) -> Instruction | None:
    return None if inst.handler is None else inst.handler.target
