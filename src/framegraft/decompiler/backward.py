"""Tests at the end of a ``while`` statement's body, as CPython 3.11 has them: one conditional jump that leads back.

Since 3.12 only plain jumps lead back: a conditional one leads around it (``normalize_jumps_in_block``).
"""

from __future__ import annotations

from ..bytecode.flow import INVERTED, renumber
from ..bytecode.ir import Instruction


def with_jumps_back(insts: list[Instruction]) -> list[Instruction]:
    """``insts`` with such pairs of jumps as one. Instructions are changed in place.

    ``if test: continue`` at the end of a loop is such a pair, too. What tells a ``while`` is that its test stands in front
    of its body in the same way.
    """
    pairs: dict[int, list[int]] = {}  # where they lead back to -> the conditional jumps
    targets = {id(inst.target) for inst in insts}
    for i, jump in enumerate(insts[1:-1], 1):
        after = insts[i + 1]
        if (jump.op == "POP_JUMP_IF" and after.op == "JUMP" and jump.target is not None and after.target is not None
                and after.target.index < i and id(after) not in targets and _leads_around(insts, jump, i)):
            pairs.setdefault(after.target.index, []).append(i)
    gone: set[int] = set()
    for body, jumps in pairs.items():
        if body > 1 and any(_stands_before(insts, body - 1, i) for i in jumps):
            for i in jumps:
                insts[i].arg, insts[i].target = INVERTED[insts[i].arg], insts[body]
                gone.add(i + 1)
    return renumber([inst for i, inst in enumerate(insts) if i not in gone]) if gone else insts


def _leads_around(insts: list[Instruction], jump: Instruction, i: int) -> bool:
    """Whether the jump's target is what comes behind the next instruction."""
    to = i + 2
    for _ in range(3):
        if to >= len(insts):
            return False
        if jump.target is insts[to]:
            return True
        if insts[to].op != "JUMP" or insts[to].target is None:
            return False
        to = insts[to].target.index  # type: ignore[union-attr]
    return False


def _stands_before(insts: list[Instruction], at: int, i: int) -> bool:
    """Whether the test that ends with the jump at ``i`` ends at ``at``, too."""
    return all((a.op, a.arg) == (b.op, b.arg) for a, b in zip(insts[at - 1 : at + 1], insts[i - 1 : i + 1], strict=True))
