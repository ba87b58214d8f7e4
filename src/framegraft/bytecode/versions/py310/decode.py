"""CPython 3.10: from raw code to canonical instructions."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Any

from ...ir import ExceptionHandler, Instruction
from .rawcode import Block, RawCode, State, shared
from .tables import APPLY, BARE, CELL, FORMATS, INTRINSICS, LOCAL, NAMED, NUMBERED, rotated

_ASYNC_GENERATOR = 0x200  # CO_ASYNC_GENERATOR
QUALNAMES: dict[int, str] = {}  # of code that functions are made of, by its id: 3.10 names the function, not its code
NAMING: list[tuple[str, Any]] = [  # finds the name of code that is no constant, for MAKE_FUNCTION
    ("DUP_TOP", 0), ("LOAD_CONST", id), ("ROT_TWO", 0), ("CALL_FUNCTION", 1),
    ("LOAD_CONST", QUALNAMES.__getitem__), ("ROT_TWO", 0), ("CALL_FUNCTION", 1)]
BELOW = ("BUILD_TUPLE", "UNPACK_SEQUENCE", "BUILD_TUPLE")  # makes one entry of some that come above a block; unpacked there
_NAMED: dict[int, weakref.ref[CodeType]] = {}


def canonical(code: CodeType) -> list[Instruction]:
    """The whole code object's canonical instructions."""
    return _Decoder(code).run()


def qualname(code: CodeType) -> str:
    """The name that the code around gives a function made of ``code``, where that has been decoded; else its simple name."""
    return QUALNAMES.get(id(code), code.co_name)


def name_code(code: CodeType, name: str) -> None:
    key = id(code)

    def forget(gone: weakref.ref[CodeType]) -> None:
        if _NAMED.get(key) is gone:
            del QUALNAMES[key], _NAMED[key]

    QUALNAMES[key], _NAMED[key] = name, weakref.ref(code, forget)


def leads_back(jump: Instruction) -> bool:
    return jump.target is not None and jump.target.offset <= jump.offset


class _Decoder:
    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.raw = RawCode(code)
        self.cells = (*code.co_cellvars, *code.co_freevars)
        self.out: list[Instruction] = []
        self.absorbed = self._absorbed()
        self.jumps: list[tuple[Instruction, int]] = []
        self.cleanups: dict[tuple[Block, ...], list[Instruction]] = {}  # blocks, the innermost an exception's

    def run(self) -> list[Instruction]:
        raw, out = self.raw, self.out
        lines = {offset: line for start, end, line in self.code.co_lines() for offset in range(start, end, 2)}
        starts: list[int] = []  # raw index -> index of the first canonical instruction from there on
        covers: list[tuple[int, tuple[Block, ...]]] = []
        for index, name in enumerate(raw.ops):
            first = len(out)
            starts.append(first)
            state = raw.states[index]
            if state is not None:
                if index not in self.absorbed:
                    self._begin(index, state)
                    self.translate(index, name, raw.args[index], state)
                blocks = state.blocks[:-1] if name == "POP_EXCEPT" else state.blocks
                if blocks:
                    covers += [(at, blocks) for at in range(first, len(out))]
            line = lines.get(raw.ends[index])
            for inst in out[first:]:
                inst.offset, inst.positions = raw.begins[index], (line, line, None, None)
        starts.append(len(out))
        for inst, goal in self.jumps:
            inst.target = out[starts[self._through(goal)]]
        self._cover(covers, starts)
        for index, inst in enumerate(out):
            inst.index = index
        return out

    def add(self, op: str, arg: Any = None) -> Instruction:
        inst = Instruction(op, arg)
        self.out.append(inst)
        return inst

    def jump(self, op: str, arg: Any, goal: int) -> None:
        self.jumps.append((self.add(op, arg), goal))

    def _through(self, goal: int) -> int:
        """Where a jump ends that leads to nothing but changes of blocks and a jump."""
        raw, seen = self.raw, set()
        while goal not in seen:
            seen.add(goal)
            at = goal
            while raw.ops[at] in ("POP_BLOCK", "SETUP_FINALLY"):
                at += 1
            if at > goal and raw.ops[at] in ("JUMP_FORWARD", "JUMP_ABSOLUTE"):
                goal = raw.goals[at]
        return goal

    # -- operations

    def _absorbed(self) -> set[int]:
        """Operations that become part of another's canonical instruction."""
        found: set[int] = set()
        raw = self.raw
        for index, name in enumerate(raw.ops):
            if name == "CALL_FUNCTION_KW":
                found.add(index - 1)  # LOAD_CONST of the names
            elif name == "MAKE_FUNCTION" and raw.ops[index - 1] != "LOAD_CONST":
                if not raw.stands(index - len(NAMING), NAMING):
                    raise ValueError(f"a function without a name at offset {raw.begins[index]}")
                found.update(range(index - len(NAMING), index))
            elif name == "MAKE_FUNCTION":
                found.add(index - 1)  # LOAD_CONST of the qualified name
                code, qualified = (self.code.co_consts[raw.args[at]] for at in (index - 2, index - 1))
                name_code(code, qualified)
            elif name == "SETUP_ASYNC_WITH" and tuple(raw.ops[index - 3 : index]) == BELOW:  # entries that the block is set up below of
                found |= {index - 3, index - 2, index - 1, index + 1}
            elif name == "POP_JUMP_IF_FALSE" and raw.ops[index - 1] in ("MATCH_CLASS", "MATCH_KEYS") and index not in raw.targets:
                found.add(index)
            elif (name in ("POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE") and raw.ops[index - 1] == "IS_OP" and self._is_none(index - 2)
                  and not {index - 1, index} & raw.targets):
                found.update((index - 2, index - 1))
        return found

    def _is_none(self, index: int) -> bool:
        return index >= 0 and self.raw.ops[index] == "LOAD_CONST" and self.code.co_consts[self.raw.args[index]] is None

    def _begin(self, index: int, state: State) -> None:
        """What stands at the beginning of a handler."""
        block = state.blocks[-1] if state.blocks else None
        if block is not None and block.caught and block.full and block.handler == index:
            self.add("PUSH_EXC_INFO")

    def translate(self, index: int, name: str, arg: Any, state: State) -> None:
        goal = self.raw.goals[index]
        if name == "LOAD_CONST":
            self.add("LOAD_CONST", self.code.co_consts[arg])
        elif name in LOCAL:
            self.add(name, self.code.co_varnames[arg])
        elif name in NAMED:
            self.add(NAMED[name], self.code.co_names[arg])
        elif name in APPLY:
            self.add("APPLY", APPLY[name][arg])
        elif name in CELL:
            self.add(CELL[name], self.cells[arg])
        elif name == "POP_TOP":
            if not state.is_absent(1):
                self.add("POP_TOP")
        elif name in NUMBERED:
            self.add(NUMBERED[name], arg)
        elif name in BARE:
            self.add(name)
        elif name[-1] == "!":
            self.on_exceptions(name[:-1], arg, goal)
        elif rotated(name, arg):
            self.rotate(rotated(name, arg), state)
        elif goal >= 0:
            self.branch(index, name, arg, goal, state)
        else:
            self.odd(index, name, arg, state)

    def on_exceptions(self, name: str, arg: Any, goal: int) -> None:
        """Sequences that stand for operations."""
        if name == "JUMP_IF_NOT_EXC_MATCH":
            self.add("CHECK_EXC_MATCH")
            self.jump("POP_JUMP_IF", "false", goal)
        elif name == "WITH_EXCEPT_START":
            self.add(name)
            if arg is not None:
                self.add("GET_AWAITABLE", arg)
        else:
            self.add(name, arg)

    def rotate(self, n: int, state: State) -> None:
        """ROT n is SWAP n, SWAP n - 1, ..., SWAP 2 of the entries that are there."""
        if not state.is_absent(1):
            for count in range(n - (state.absent >> state.depth - n).bit_count(), 1, -1):
                self.add("SWAP", count)

    def branch(self, index: int, name: str, arg: Any, goal: int, state: State) -> None:
        raw = self.raw
        if name in ("JUMP_FORWARD", "JUMP_ABSOLUTE"):
            self.jump("JUMP", None, goal)
        elif name == "FOR_ITER":
            self.jump("FOR_ITER", None, goal)
        elif name == "JUMP_IF_NOT_EXC_MATCH":
            self.add("CHECK_EXC_MATCH")
            self.jump("POP_JUMP_IF", "false", goal)
        elif name.endswith("_OR_POP"):
            self.add("COPY", 1)
            self.jump("POP_JUMP_IF", "true" if "TRUE" in name else "false", goal)
            self.add("POP_TOP")
        elif name.startswith("POP_JUMP"):
            condition = "true" if "TRUE" in name else "false"
            if index - 1 in self.absorbed and raw.ops[index - 1] == "IS_OP":
                condition = "none" if (name == "POP_JUMP_IF_TRUE") != bool(raw.args[index - 1]) else "not_none"
            self.jump("POP_JUMP_IF", condition, goal)
        elif name == "SETUP_WITH":
            self.add("BEFORE_WITH")

    def odd(self, index: int, name: str, arg: Any, state: State) -> None:
        raw = self.raw
        if name == "DUP_TOP":
            self._duplicate(index, state)
        elif name == "DUP_TOP_TWO":
            self.add("COPY", 2)
            self.add("COPY", 2)
        elif name in ("CALL_FUNCTION", "CALL_METHOD"):
            self.add("CALL", (arg, ()))
        elif name == "CALL_FUNCTION_KW":
            names = self.code.co_consts[raw.args[index - 1]]
            self.add("CALL", (arg - len(names), names))
        elif name == "CALL_FUNCTION_EX":
            self.add("CALL_EX", bool(arg))
        elif name == "MAKE_FUNCTION":
            self.add("MAKE_FUNCTION", arg)
        elif name == "FORMAT_VALUE":
            self.add("FORMAT_VALUE", FORMATS[arg])
        elif name == "UNPACK_EX":
            self.add("UNPACK_EX", (arg & 0xFF, arg >> 8))
        elif name in INTRINSICS:
            self.add("INTRINSIC", INTRINSICS[name])
        elif name == "LOAD_ASSERTION_ERROR":
            self.add("LOAD_CONST", AssertionError)
        elif name == "GET_AWAITABLE":
            self.add("GET_AWAITABLE", 0)
        elif name == "GEN_START":
            self.add("RETURN_GENERATOR")
        elif name in ("MATCH_CLASS", "MATCH_KEYS"):
            self._match(index, name, arg)
        elif name == "COPY_DICT_WITHOUT_KEYS":
            self._without_keys(dict(state.keys)[state.depth - 1])
        elif name in ("YIELD_VALUE", "YIELD_FROM"):
            self._yield(index, name)
        elif name in ("RERAISE", "POP_EXCEPT", "WITH_EXCEPT_START"):
            self._handled(name, arg, state)
        elif name not in ("NOP", "POP_BLOCK"):
            raise ValueError(f"unknown operation {name} at offset {raw.begins[index]}")

    def _duplicate(self, index: int, state: State) -> None:
        if state.is_absent(1):
            return
        # The arguments of __exit__, where no exception leaves the block: other CPythons load them one by one.
        for first in (index - 1, index - 2):
            if self._is_none(first) and self.raw.ops[first + 1 : first + 4] == ["DUP_TOP", "DUP_TOP", "CALL_FUNCTION"]:
                self.add("LOAD_CONST", None)
                return
        if self.raw.ops[index + 1] == "ROT_THREE" and index + 1 not in self.raw.targets and not state.is_absent(2):
            self.absorbed.add(index + 1)  # as other CPythons have it in chains of comparisons
            self.add("SWAP", 2)
            self.add("COPY", 2)
            return
        self.add("COPY", 1)

    def _handled(self, name: str, arg: int, state: State) -> None:
        """Operations on the exception that the innermost block is about."""
        block = state.blocks[-1]
        if name == "WITH_EXCEPT_START":
            self.add(name)
        elif name == "RERAISE":
            # Where lasti lies, if wanted: below the exception and what was handled before.
            self.add("RERAISE", 1 + block.full if arg and block.lasti else 0)
        elif block.full:
            self.add("POP_EXCEPT")
            if block.lasti:
                self.add("POP_TOP")

    def _yield(self, index: int, name: str) -> None:
        if name == "YIELD_VALUE":
            if self.code.co_flags & _ASYNC_GENERATOR:
                self.add("INTRINSIC", "async_gen_wrap")
            self.add("YIELD_VALUE")
            return
        before = index - 2  # below what is sent first
        while self.raw.ops[before] == "NOP":
            before -= 1
        awaits = self.raw.ops[before] in ("GET_AWAITABLE", "GET_ANEXT", "WITH_EXCEPT_START!")
        send = self.add("SEND")
        self.jumps.append((send, index + 1))
        self.add("YIELD_VALUE", "await" if awaits else "from")
        self.add("JUMP").target = send

    # -- match statements

    def _match(self, index: int, name: str, arg: int) -> None:
        """3.10 leaves a bool on top, for the jump behind it."""
        self.add(name, arg if name == "MATCH_CLASS" else None)
        if index + 1 in self.absorbed:
            self.add("COPY", 1)
            self.jump("POP_JUMP_IF", "none", self.raw.goals[index + 1])
        elif name == "MATCH_CLASS" or self.raw.ops[index + 1] != "POP_TOP":
            raise ValueError(f"{name} without a jump at offset {self.raw.begins[index]}")
        else:
            self.absorbed.add(index + 1)

    def _without_keys(self, count: int) -> None:
        """As other CPythons spell it: [subject, keys] -> [subject, rest]."""
        for op, arg in (("BUILD_MAP", 0), ("COPY", 3), ("DICT_UPDATE", 1), ("SWAP", 2), ("UNPACK_SEQUENCE", count)):
            self.add(op, arg)
        for left in range(count, 0, -1):
            for op, arg in (("COPY", 1 + left), ("SWAP", 2), ("DELETE_SUBSCR", None)):
                self.add(op, arg)

    # -- handlers

    def _cover(self, covers: list[tuple[int, tuple[Block, ...]]], starts: list[int]) -> None:
        """Attach handlers: those of blocks, and for each exception that is handled what ends that."""
        made: dict[tuple[Block, ...], ExceptionHandler | None] = {(): None}
        todo: list[Instruction] = []

        def handler(blocks: tuple[Block, ...]) -> ExceptionHandler | None:
            if blocks in made:
                return made[blocks]
            block = blocks[-1]
            if not block.caught:
                target = self.out[starts[block.handler]]
                while target.op == "JUMP" and target.target is not None and not block.full:
                    target = target.target
                found: ExceptionHandler | None = ExceptionHandler(target, block.depth, block.lasti)
            elif block.full:
                ending = [Instruction("COPY", 3), Instruction("POP_EXCEPT"), Instruction("RERAISE", 1)]
                for inst in ending:
                    inst.handler, inst.positions = handler(blocks[:-1]), (None, None, None, None)
                todo.extend(ending)
                found = ExceptionHandler(ending[0], block.depth + block.lasti + 1, True)
            else:
                found = handler(blocks[:-1])
            made[blocks] = found
            return found

        around = {id(self.out[at]): blocks for at, blocks in covers}
        for inst, _ in self.jumps:
            if inst.op == "JUMP" and leads_back(inst):
                around[id(inst)] = shared(around.get(id(inst), ()), around.get(id(inst.target), ()))
                inst.handler = handler(around[id(inst)])
        for at, _ in covers:
            self.out[at].handler = handler(around[id(self.out[at])])
        self._settle_jumps()
        self.out += todo

    def _settle_jumps(self) -> None:
        """Blocks are changed on the way to where a jump leads, before a JUMP or behind it: JUMPs have their target's handler.

        Those that lead back leave blocks before and enter others behind it, as one that ends a loop around a ``try`` statement
        does. A JUMP that is jumped to from under another handler, and so does nothing but change blocks, is skipped.
        """
        jumps = [(inst, inst.target) for inst, _ in self.jumps if inst.target is not None]
        changed = True
        while changed:
            changed = False
            for inst, target in jumps:
                if inst.op == "JUMP" and inst.handler is not target.handler and not leads_back(inst):
                    inst.handler, changed = target.handler, True
        for inst, target in jumps:
            seen = {target}
            while target.op == "JUMP" and target.handler is not inst.handler and target.target not in (*seen, None):
                inst.target = target = target.target
                seen.add(target)


