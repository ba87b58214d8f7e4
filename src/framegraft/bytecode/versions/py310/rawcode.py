"""Raw code of CPython 3.10 as lists, with stack and blocks before each operation.

Of the stack, a bit is set for each entry that the canonical stack does not have: one of a method's two, and of the six that
a handler begins with (traceback, value and type of the exception handled before, and of the new one) all but the values.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any, NamedTuple, TypeVar

from .tables import ABSOLUTE, ENTRY, LASTI, MATCH, NO_FALLTHROUGH, NO_MATCH, OPCODES, RELATIVE, SEQUENCES, SETUPS, copy, rotated


class Block(NamedTuple):
    """An entry of the block stack. ``level``: raw entries that the handler keeps; ``depth``: canonical ones.

    ``caught``: the handler runs, and leaving the block ends it. ``full``: what was handled before is on the canonical stack.
    """

    handler: int
    level: int
    depth: int
    caught: bool
    full: bool
    lasti: bool


T = TypeVar("T")


def shared(blocks: tuple[T, ...], others: tuple[T, ...]) -> tuple[T, ...]:
    """The outer blocks that both have."""
    same = 0
    while same < min(len(blocks), len(others)) and blocks[same] == others[same]:
        same += 1
    return blocks[:same]


class State(NamedTuple):
    depth: int
    absent: int
    blocks: tuple[Block, ...] = ()
    keys: tuple[tuple[int, int], ...] = ()  # entries that hold the keys of a mapping pattern, and how many keys that are

    def count(self, below: int) -> int:
        """Canonical entries among the lowest ``below`` raw ones."""
        return below - (self.absent & (1 << below) - 1).bit_count()

    def is_absent(self, below_top: int) -> bool:
        """Whether an entry is absent: the top is 1."""
        return bool(self.absent >> self.depth - below_top & 1)


class RawCode:
    """Operations as parallel lists; sequences that stand for canonical operations are one operation of that name."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.ops: list[str] = []
        self.args: list[Any] = []
        self.begins: list[int] = []  # byte offset, of the first prefix if there is one
        self.ends: list[int] = []  # byte offset of the operation itself: its line is told there
        self.goals: list[int] = []  # index of where it jumps to, -1 for none
        self._read(code.co_code)
        self.targets = {goal for goal in self.goals if goal >= 0}
        self._gather()
        self.states: list[State | None] = [None] * len(self.ops)
        self._simulate()

    def _read(self, data: bytes) -> None:
        begin, prefix = 0, 0
        goals: list[int] = []
        for offset in range(0, len(data), 2):
            name, arg = dis.opname[data[offset]], data[offset + 1] | prefix
            if name == "EXTENDED_ARG":
                prefix = arg << 8
                continue
            self.ops.append(name)
            self.args.append(arg)
            self.begins.append(begin)
            self.ends.append(offset)
            goals.append(2 * arg if name in ABSOLUTE else offset + 2 + 2 * arg if name in RELATIVE else -1)
            begin, prefix = offset + 2, 0
        index = {begin: i for i, begin in enumerate(self.begins)}
        self.goals = [index[goal] if goal >= 0 else -1 for goal in goals]

    # -- sequences

    def _gather(self) -> None:
        """Replace sequences that stand for one canonical operation; what is inside them becomes NOPs."""
        for index, name in enumerate(self.ops):
            if name in ("DUP_TOP", "LOAD_CONST", "ROT_TWO", "ROT_THREE", "ROT_FOUR", "ROT_N"):
                self._gather_at(index)
            elif name == "MATCH_CLASS" and self.goals[index + 1] == index + 4 and self.stands(index + 1, NO_MATCH):
                self._put(index, 4, "MATCH_CLASS!", self.args[index])

    def _gather_at(self, index: int) -> None:
        if self.ops[index] in ("DUP_TOP", "LOAD_CONST"):
            for (name, arg), sequence in SEQUENCES.items():
                if self.stands(index, sequence):
                    self._put(index, len(sequence), name + "!", arg)
                    return
            return
        if self.stands(index, MATCH) and self.name_at(index + 4) == "JUMP_IF_NOT_EXC_MATCH":
            self._put(index, 4, "NOP", 0)
            self.ops[index + 4] = "JUMP_IF_NOT_EXC_MATCH!"
            return
        n = rotated(self.ops[index], self.args[index])
        if self.stands(index, copy(n)):
            self._put(index, n + 1, "COPY!", n)

    def name_at(self, index: int) -> str:
        return self.ops[index] if index < len(self.ops) else ""

    def stands(self, index: int, sequence: list[tuple[str, Any]]) -> bool:
        """Whether operations stand from ``index`` on that nothing jumps into."""
        for at, (name, arg) in enumerate(sequence, index):
            if self.name_at(at) != name or at > index and at in self.targets:
                return False
            if name == "LOAD_CONST":
                if self.code.co_consts[self.args[at]] is not arg:
                    return False
            elif OPCODES[name] >= dis.HAVE_ARGUMENT and self.goals[at] < 0 and self.args[at] != arg:
                return False
        return True

    def _put(self, index: int, length: int, name: str, arg: Any) -> None:
        self.ops[index], self.args[index] = name, arg
        for at in range(index + 1, index + length):
            self.ops[at], self.goals[at] = "NOP", -1

    # -- the stack

    def _simulate(self) -> None:
        work = [(0, State(0, 0))]
        while work:
            index, state = work.pop()
            while self.states[index] is None:
                self.states[index] = state
                name, goal = self.ops[index], self.goals[index]
                if name in SETUPS:
                    state, block = self._set_up(name, goal, state)
                    work.append(self._caught(goal, block, state))
                elif goal >= 0:
                    work.append((goal, self._after(index, state, True)))
                if name in NO_FALLTHROUGH or name == "RERAISE!":
                    break
                if name not in SETUPS:
                    state = self._after(index, state, False)
                index += 1

    def _set_up(self, name: str, goal: int, state: State) -> tuple[State, Block]:
        level = state.depth - (name == "SETUP_ASYNC_WITH")
        if name == "SETUP_WITH":
            state = state._replace(depth=state.depth + 1)
        full, lasti = self._kind(goal)
        block = Block(goal, level, state.count(level), False, full, lasti)
        return state._replace(blocks=(*state.blocks, block)), block

    def _kind(self, handler: int) -> tuple[bool, bool]:
        """Whether canonical code of the handler begins with PUSH_EXC_INFO, and whether lasti is below the exception."""
        if self.is_entry(handler):
            return False, self.stands(handler + len(ENTRY), LASTI)
        first = self.goals[handler] if self.ops[handler] == "JUMP_ABSOLUTE" else handler
        if self.ops[first] == "END_ASYNC_FOR":
            return False, False
        if self.is_clearing(handler):
            return False, True
        return True, self.ops[handler] == "WITH_EXCEPT_START"

    def is_entry(self, handler: int) -> bool:
        """Whether the handler begins as canonical ones do."""
        return self.stands(handler, ENTRY)

    def is_clearing(self, handler: int) -> bool:
        """The end of ``except ... as name`` where its body raises."""
        names = [self.name_at(at) for at in range(handler, handler + 4)]
        return (names[0] == "LOAD_CONST" and names[1][:5] == "STORE" and names[2][:6] == "DELETE" and names[3] == "RERAISE"
                and names[1][5:] == names[2][6:])

    def _caught(self, handler: int, block: Block, state: State) -> tuple[int, State]:
        """What stands at the beginning of a handler, and the state there."""
        level = block.level
        absent = state.absent & (1 << level) - 1
        if self.is_entry(handler):
            behind = handler + len(ENTRY) + block.lasti * len(LASTI)
            return behind, State(level + 1 + block.lasti, absent, state.blocks[:-1])
        for at, is_absent in enumerate((not block.lasti, not block.full, True, True, False, True), level):
            absent |= is_absent << at
        return handler, State(level + 6, absent, (*state.blocks[:-1], block._replace(caught=True)))

    def _after(self, index: int, state: State, jump: bool) -> State:
        name, arg = self.ops[index], self.args[index]
        depth, absent, blocks, keys = state
        n = rotated(name, arg)
        if n:
            base = depth - n
            bits = absent >> base
            bits = (bits << 1 | bits >> n - 1) & (1 << n) - 1
            moved = tuple((at if at < base else base if at == depth - 1 else at + 1, count) for at, count in keys)
            return State(depth, absent & (1 << base) - 1 | bits << base, blocks, moved)
        if name == "DUP_TOP":
            return State(depth + 1, absent | state.is_absent(1) << depth, blocks, keys)
        if name == "LOAD_METHOD":
            return State(depth + 1, absent | 1 << depth - 1, blocks, keys)
        if name in ("POP_BLOCK", "POP_EXCEPT", "END_ASYNC_FOR"):
            blocks = blocks[:-1]
        elif name == "MATCH_KEYS":
            keys = (*keys, (depth - 1, self._count_keys(index - 1)))
        if name in _EFFECTS:
            depth += _EFFECTS[name]
        else:
            depth += dis.stack_effect(OPCODES[name], arg if OPCODES[name] >= dis.HAVE_ARGUMENT else None, jump=jump)
        kept = depth - (name == "CALL_METHOD")  # its result lies where one of the method's two entries was absent
        return State(depth, absent & (1 << max(kept, 0)) - 1, blocks, tuple(key for key in keys if key[0] < depth) if keys else ())

    def _count_keys(self, index: int) -> int:
        """How many keys the operation before MATCH_KEYS has pushed, as a tuple."""
        arg = self.args[index]
        return len(self.code.co_consts[arg]) if self.ops[index] == "LOAD_CONST" else arg


_EFFECTS = {"GEN_START": 0, "POP_EXCEPT": -3, "END_ASYNC_FOR": -7, "JUMP_IF_NOT_EXC_MATCH!": -1, "PUSH_EXC_INFO!": 1,
            "POP_EXCEPT!": -1, "WITH_EXCEPT_START!": 1, "COPY!": 1, "MATCH_CLASS!": -2}
