"""CPython 3.10: from canonical instructions to raw code.

An instruction needs the blocks of its handler, of the handler that covers that one's beginning, and so on. Where control goes
from one instruction to another, blocks are popped and set up on the way. A handler begins by leaving its block: what is then
on the stack is what canonical code has there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...flow import NO_FALLTHROUGH, stack_depths, stack_effect
from ...ir import ExceptionHandler, Instruction
from ...verify import verify
from ..placing import place
from .decode import BELOW, NAMING, qualname
from .locate import line_table
from .rawcode import shared
from .tables import (
    APPLIED,
    BARE,
    CELL,
    ENTRY,
    FORMATS,
    INTRINSICS,
    LASTI,
    LOAD_CELL,
    LOCAL,
    MATCH,
    NAMED,
    NUMBERED,
    OPCODES,
    RELATIVE,
    SEQUENCES,
    copy,
    rotation,
    swap,
)

_KINDS = {0x20: 0, 0x80: 1, 0x200: 2}  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR: the argument of GEN_START
_ASYNC_GENERATOR = 0x200
_OPCODE = {canonical: name for name, canonical in (*NUMBERED.items(), *CELL.items(), *NAMED.items()) if name != "LOAD_METHOD"}
_INTRINSIC = {which: name for name, which in INTRINSICS.items()}
_ROOM = 6  # entries that a handler's beginning, or a sequence that stands for an operation, needs above those of canonical code

Chain = tuple["Block", ...]


class Block(NamedTuple):
    """A handler to be set up; handlers of the same place, depth and kind are one."""

    target: int
    depth: int
    lasti: bool


class Assembled(NamedTuple):
    co_code: bytes
    co_linetable: bytes
    co_stacksize: int
    co_varnames: tuple[str, ...]
    co_nlocals: int
    co_cellvars: tuple[str, ...]


class Unit:
    """A raw instruction on its way. ``goal``: index in ``starts`` of the unit it jumps to, or -1."""

    __slots__ = ("op", "arg", "goal", "source", "size", "offset")

    def __init__(self, op: str, arg: int = 0, goal: int = -1) -> None:
        self.op = op
        self.arg = arg
        self.goal = goal
        self.source: Instruction | None = None
        self.size = 2
        self.offset = 0


def assemble(body: list[Instruction], layout: Any, consts: Any, names: Any, firstlineno: int) -> Assembled:
    """Raw code and tables for reachable, numbered instructions; ``consts`` and ``names`` are filled."""
    verify(body)
    lowering = _Lowering(body, layout, consts, names)
    lowering.run()
    _place(lowering.units, lowering.starts)
    code = bytearray()
    for unit in lowering.units:
        _write(code, unit)
    varnames = tuple(lowering.locals)
    return Assembled(bytes(code), line_table(lowering.units, firstlineno), lowering.stacksize, varnames, len(varnames), lowering.cells)


class _Lowering:
    """The units of each instruction; ``starts[i]`` is the first unit of instruction i (behind them, of what else is jumped to)."""

    def __init__(self, body: list[Instruction], layout: Any, consts: Any, names: Any) -> None:
        self.body = body
        self.consts = consts
        self.names = names
        self.flags = layout.flags
        self.cells = tuple(cell for cell in layout.cells if cell not in layout.no_make_cell)
        self.held = {cell: f"{cell}.cell" for cell in layout.cells if cell in layout.no_make_cell}  # cells kept in locals
        self.locals = {name: i for i, name in enumerate((*layout.locals, *self.held.values()))}
        self.cell_slots = {name: i for i, name in enumerate((*self.cells, *layout.frees))}
        self.units: list[Unit] = []
        self.starts: list[int] = [-1] * len(body)
        self.targets = {inst.target.index for inst in body if inst.target is not None}
        self.targets |= {inst.handler.target.index for inst in body if inst.handler is not None}
        self.depths: list[Any] = stack_depths(body)
        self.known_chains: dict[int, Chain] = {}
        self.pending: dict[Block, int] = {}  # handlers whose beginning is yet to be placed -> its place in ``starts``
        self.entries: dict[tuple[int, Chain], int] = {}  # instruction, blocks -> where the change of blocks before it begins
        self.detours: list[tuple[int, Instruction, Chain]] = []
        self.now: Chain = ()  # the blocks where the last unit was put
        self.stacksize = 1
        self.depth = 0  # before the instruction at hand
        self.falls = True  # whether control goes on behind the last unit
        self.skip = 0  # so many of the next instructions have been lowered with others

    # -- blocks

    def chain(self, index: int) -> Chain:
        """The blocks that instruction ``index`` needs, outermost first."""
        found = self.known_chains.get(index)
        if found is None:
            self.known_chains[index] = ()  # for a handler that covers its own beginning
            handler = self.body[index].handler
            found = () if handler is None else self._with(handler)
            self.known_chains[index] = found
        return found

    def _with(self, handler: ExceptionHandler) -> Chain:
        block = Block(handler.target.index, handler.depth, handler.lasti)
        return (*self.around(block), block)

    def around(self, block: Block) -> Chain:
        """The blocks around one: of those that its handler begins in, the ones that are as deep at most."""
        outer: list[Block] = []
        for other in self.chain(block.target):
            if other == block or other.depth > block.depth:
                break
            outer.append(other)
        return tuple(outer)

    def _change(self, to: Chain, depth: int) -> None:
        """Pop and set up blocks until they are ``to``, where the stack is ``depth`` deep."""
        same = len(shared(self.now, to))
        for _ in self.now[same:]:
            self.put("POP_BLOCK")
        for block in to[same:]:
            above = depth - block.depth
            if above < 0:
                raise ValueError(f"a handler keeps {block.depth} entries, there are {depth}")
            if above > 1:  # twice, since unpacking turns them round
                for name in BELOW:
                    self.put(name, above)
            self.put("SETUP_ASYNC_WITH" if above else "SETUP_FINALLY", goal=self._beginning(block))
            if above > 1:
                self.put("UNPACK_SEQUENCE", above)
        self.now = to

    def _beginning(self, block: Block) -> int:
        """The place of a handler's beginning, which comes later."""
        if block not in self.pending:
            self.pending[block] = len(self.starts)
            self.starts.append(-1)
        return self.pending[block]

    def _begin(self, block: Block) -> None:
        """A handler's beginning: the exception, with lasti below it where wanted, is left on the stack."""
        target = self.body[block.target]
        self.starts[self.pending.pop(block)] = len(self.units)
        self.now = self.around(block)
        self.stacksize = max(self.stacksize, block.depth + _ROOM)
        if target.op == "END_ASYNC_FOR":
            if self.now != self.chain(block.target):
                raise ValueError(f"cannot encode {target}: its handler is not around the loop")
            return  # takes the handler's six entries itself
        self.sequence(ENTRY)
        if block.lasti:
            self.sequence(LASTI)
        self._change(self.chain(block.target), block.depth + block.lasti + 1)

    # -- instructions

    def run(self) -> None:
        for inst in self.body:
            if self.skip:
                self.skip -= 1
                continue
            first = len(self.units)
            self._arrive(inst.index)
            self.starts[inst.index] = len(self.units)
            self.depth = self.depths[inst.index]
            self._room(1)
            self.falls = inst.op not in NO_FALLTHROUGH
            self.lower(inst)
            self._mark(first, inst)
        self._finish()

    def _arrive(self, index: int) -> None:
        """The ways to an instruction that end right before it: the one from above, else a handler's beginning or a detour."""
        detours = [detour for detour in self.detours if detour[1].index == index]
        if not self.falls:
            self.now = self.chain(index)
            block = next((block for block in self.pending if block.target == index), None)
            if block is not None:
                self._begin(block)
                return
            if not detours:
                return
            self.now = detours[0][2]
        for detour in detours:
            if detour[2] == self.now:
                self.starts[detour[0]] = len(self.units)
                self.detours.remove(detour)
        if self.now != self.chain(index):
            self.entries[index, self.now] = len(self.starts)
            self.starts.append(len(self.units))
        inst = self.body[index]
        if inst.op == "JUMP" and index not in self.targets and (inst.target.index, self.now) in self.entries:  # type: ignore[union-attr]
            return  # to where blocks are changed
        self._change(self.chain(index), self.depths[index])

    def _mark(self, first: int, inst: Instruction) -> None:
        for unit in self.units[first:]:
            unit.source = inst

    def _finish(self) -> None:
        """What jumps and handlers need beside the instructions."""
        while self.pending or self.detours:
            first = len(self.units)
            if self.pending:
                block = next(iter(self.pending))
                target = self.body[block.target]
                self._begin(block)
                self._jump_to(target.index)
            else:
                place, target, chain = self.detours.pop()
                self.starts[place] = len(self.units)
                self.now = chain
                self._change(self.chain(target.index), self.depths[target.index])
                self._jump_to(target.index)
            self._mark(first, target)

    def _room(self, above: int) -> None:
        """The instruction at hand needs ``above`` entries more than there are before it."""
        self.stacksize = max(self.stacksize, self.depth + above)

    def put(self, name: str, arg: int = 0, goal: int = -1) -> None:
        self.units.append(Unit(name, arg, goal))

    def sequence(self, operations: list[tuple[str, Any]]) -> None:
        for name, arg in operations:
            self.put(name, self.consts.add(arg) if name == "LOAD_CONST" else arg)

    def lower(self, inst: Instruction) -> None:
        op, arg = inst.op, inst.arg
        if op in _LOWERINGS:
            _LOWERINGS[op](self, inst)
        elif op == "LOAD_CONST":
            self._constant(inst)
        elif op in LOCAL:
            self.put(op, self.locals[arg])
        elif (op, arg) in SEQUENCES:
            awaited = op == "WITH_EXCEPT_START" and self._followed(inst, ("GET_AWAITABLE", 0))
            self.skip = int(awaited)
            self._special((op, 0 if awaited else arg))
        elif op == "RERAISE":
            self._special((op, 0))
        elif op in BARE:
            self.put(op)
        elif op in _OPCODE:
            name = _OPCODE[op]
            self.put(name, self.names.add(arg) if name in NAMED else self.cell_slots[arg] if name in CELL else arg or 0)
        else:
            raise ValueError(f"cannot encode {inst}")
        self._room(stack_effect(inst, False))

    def _constant(self, inst: Instruction) -> None:
        self.put("LOAD_CONST", self.consts.add(inst.arg))
        if inst.arg is None and self._followed(inst, ("LOAD_CONST", None), ("LOAD_CONST", None), ("CALL", (3, ()))):
            self.put("DUP_TOP")  # a call of __exit__: errors of GET_AWAITABLE are worded by that
            self.put("DUP_TOP")
            self.skip = 2
            self._room(3)

    def _special(self, key: Any) -> None:
        self.sequence(SEQUENCES[key])
        self._room(4)

    def _followed(self, inst: Instruction, *wanted: tuple[str, Any]) -> bool:
        """Whether these stand behind the instruction, under the same handler, and nothing jumps to them."""
        following = self.body[inst.index + 1 : inst.index + 1 + len(wanted)]
        return (len(following) == len(wanted) and not any(other.index in self.targets for other in following)
                and all((other.op, other.arg) == want and self.chain(other.index) == self.chain(inst.index)
                        for other, want in zip(following, wanted, strict=True)))

    def _apply(self, inst: Instruction) -> None:
        if inst.arg[0] not in APPLIED:
            raise ValueError(f"cannot encode {inst}")
        self.put(*APPLIED[inst.arg[0]])

    def _call(self, inst: Instruction) -> None:
        npos, kwnames = inst.arg
        if kwnames:
            self.put("LOAD_CONST", self.consts.add(kwnames))
            self._room(2)
        self.put("CALL_FUNCTION_KW" if kwnames else "CALL_FUNCTION", npos + len(kwnames))

    def _call_ex(self, inst: Instruction) -> None:
        self.put("CALL_FUNCTION_EX", int(inst.arg))

    def _make_function(self, inst: Instruction) -> None:
        before = self.body[inst.index - 1]
        if before.op == "LOAD_CONST" and inst.index and inst.index not in self.targets:
            self.put("LOAD_CONST", self.consts.add(qualname(before.arg)))
        else:
            self.sequence(NAMING)
        self.put("MAKE_FUNCTION", inst.arg or 0)
        self._room(3)

    def _format_value(self, inst: Instruction) -> None:
        self.put("FORMAT_VALUE", FORMATS.index(inst.arg))

    def _unpack_ex(self, inst: Instruction) -> None:
        self.put("UNPACK_EX", inst.arg[0] | inst.arg[1] << 8)
        self._room(sum(inst.arg) + 1)

    def _intrinsic(self, inst: Instruction) -> None:
        if inst.arg == "async_gen_wrap" and self.flags & _ASYNC_GENERATOR and self._followed(inst, ("YIELD_VALUE", None)):
            return  # YIELD_VALUE does it
        if inst.arg not in _INTRINSIC:
            raise ValueError(f"cannot encode {inst}")
        self.put(_INTRINSIC[inst.arg])

    def _generator(self, inst: Instruction) -> None:
        self.put("GEN_START", next(kind for flag, kind in _KINDS.items() if self.flags & flag))

    def _awaitable(self, inst: Instruction) -> None:
        self.put("GET_AWAITABLE")

    # -- the order of the stack

    def _copy(self, inst: Instruction) -> None:
        n = inst.arg
        if n == 1:
            self.put("DUP_TOP")
        elif n == 2 and self._followed(inst, ("COPY", 2)):
            self.put("DUP_TOP_TWO")
            self.skip = 1
        else:
            self.sequence(copy(n))

    def _swap(self, inst: Instruction) -> None:
        n = inst.arg
        if n < 2:
            return
        if n == 2 and self._followed(inst, ("COPY", 2)):
            self.put("DUP_TOP")
            self.put("ROT_THREE")
            self.skip = 1
            self._room(1)
        elif self._followed(inst, *(("SWAP", k) for k in range(n - 1, 1, -1))):
            self.put(*rotation(n))
            self.skip = n - 2
        else:
            self.sequence(swap(n))

    # -- cells that are parameters

    def _cell(self, inst: Instruction) -> None:
        op, name = inst.op, inst.arg
        if op == "STORE_CELL":
            if name not in self.held:
                raise ValueError(f"cannot encode {inst}: the frame makes that cell")
            self.put("STORE_FAST", self.locals[self.held[name]])
        elif name not in self.held:
            if name not in self.cell_slots:
                raise ValueError(f"no cell or free variable {name!r}")
            self.put({canonical: raw for raw, canonical in CELL.items()}[op], self.cell_slots[name])
        else:
            self._held_cell(op, name)

    def _held_cell(self, op: str, name: str) -> None:
        load = ("LOAD_FAST", self.locals[self.held[name]])
        contents = self.names.add("cell_contents")
        self._room(3)
        if op == "LOAD_CLOSURE":
            self.put(*load)
        elif op == "STORE_DEREF":
            self.put(*load)
            self.put("STORE_ATTR", contents)
        elif op == "LOAD_DEREF" or op == "DELETE_DEREF":  # both raise where the variable is unbound
            self.put("LOAD_CONST", self.consts.add(LOAD_CELL))
            self.put(*load)
            self.put("LOAD_CONST", self.consts.add(name))
            self.put("CALL_FUNCTION", 2)
            if op == "DELETE_DEREF":
                self.put("POP_TOP")
                self.put(*load)
                self.put("DELETE_ATTR", contents)
        else:
            raise ValueError(f"cannot encode {op} {name!r}")

    # -- jumps

    def _goal(self, target: Instruction, forward: bool = False, here: int = -1) -> int:
        """Where to jump to for an instruction; by way of changes of blocks where it needs other ones."""
        if forward and target.index <= here:
            pass
        elif self.chain(target.index) == self.now:
            return target.index
        elif (target.index, self.now) in self.entries:
            return self.entries[target.index, self.now]
        place = len(self.starts)
        self.starts.append(-1)
        self.detours.append((place, target, self.now))
        return place

    def _jump_to(self, index: int) -> None:
        goal = self.starts[index]
        self.put("JUMP_FORWARD" if goal < 0 else "JUMP_ABSOLUTE", goal=index)

    def _jump(self, inst: Instruction) -> None:
        target: Any = inst.target
        to = self.chain(target.index)
        if (target.index, self.now) not in self.entries:  # on a way back, blocks are set up behind the jump
            self._change(shared(self.now, to) if target.index <= inst.index else to, self.depths[target.index])
        self._jump_to(self._goal(target))

    def _jump_if(self, inst: Instruction) -> None:
        target: Any = inst.target
        condition = inst.arg
        if condition in ("none", "not_none"):
            self.put("LOAD_CONST", self.consts.add(None))
            self.put("IS_OP", 0)
            self._room(2)
            condition = "true" if condition == "none" else "false"
        self.put(f"POP_JUMP_IF_{condition.upper()}", goal=self._goal(target))

    def _for_iter(self, inst: Instruction) -> None:
        target: Any = inst.target
        self.put("FOR_ITER", goal=self._goal(target, True, inst.index))

    def _local_goal(self) -> int:
        self.starts.append(-1)
        return len(self.starts) - 1

    def _here(self, place: int) -> None:
        self.starts[place] = len(self.units)

    # -- with, except, match

    def _before_with(self, inst: Instruction) -> None:
        chain = self.chain(inst.index)
        after = self.chain(inst.index + 1) if inst.index + 1 < len(self.body) else ()
        self._room(2)
        if after and len(after) == len(chain) + 1 and after[:-1] == chain and after[-1].depth == self.depths[inst.index]:
            self.put("SETUP_WITH", goal=self._beginning(after[-1]))
            self.now = after
            return
        never, behind = self._local_goal(), self._local_goal()
        self.put("SETUP_WITH", goal=never)
        self.put("POP_BLOCK")
        self.put("JUMP_FORWARD", goal=behind)
        self._here(never)
        self.put("RERAISE", 0)
        self._here(behind)

    def _check_match(self, inst: Instruction) -> None:
        self.sequence(MATCH)
        self._room(3)
        if self._followed(inst, ("POP_JUMP_IF", "false")):
            target: Any = self.body[inst.index + 1].target
            self.put("JUMP_IF_NOT_EXC_MATCH", goal=self._goal(target))
            self.skip = 1
            return
        other, behind = self._local_goal(), self._local_goal()
        self.put("JUMP_IF_NOT_EXC_MATCH", goal=other)
        self.put("LOAD_CONST", self.consts.add(True))
        self.put("JUMP_FORWARD", goal=behind)
        self._here(other)
        self.put("LOAD_CONST", self.consts.add(False))
        self._here(behind)

    def _match(self, inst: Instruction) -> None:
        """3.10 leaves a bool on top; where the pattern fails, MATCH_CLASS leaves the subject below it."""
        self.put(inst.op, inst.arg or 0)
        self._room(3)
        if self._followed(inst, ("COPY", 1), ("POP_JUMP_IF", "none")):
            target: Any = self.body[inst.index + 2].target
            if inst.op == "MATCH_KEYS" or target.op == "POP_TOP":
                self.put("POP_JUMP_IF_FALSE", goal=self._goal(target))
                self.skip = 2
                return
        if inst.op == "MATCH_KEYS":
            self.put("POP_TOP")
            return
        behind = self._local_goal()
        self.put("POP_JUMP_IF_TRUE", goal=behind)
        self.put("POP_TOP")
        self.put("LOAD_CONST", self.consts.add(None))
        self._here(behind)

    # -- generators

    def _send(self, inst: Instruction) -> None:
        """YIELD_FROM is the whole loop: SEND, YIELD_VALUE, JUMP back."""
        body, at = self.body, inst.index
        end: Any = inst.target
        if [other.op for other in body[at : at + 3]] != ["SEND", "YIELD_VALUE", "JUMP"] or body[at + 2].target is not inst:
            raise ValueError(f"cannot encode {inst}: the loop is not whole")
        self.starts[at + 2] = self.starts[at]
        self.put("YIELD_FROM")
        self.skip = 2
        self.falls = end.index == at + 3
        if not self.falls:
            self._change(self.chain(end.index), self.depths[end.index])
            self._jump_to(end.index)

    def _yield(self, inst: Instruction) -> None:
        self.put("YIELD_VALUE")
        if inst.arg is None:
            return
        # The value was an inner iterator's: by the operation that follows, CPython finds that, and throws into it.
        after: Any = self.body[inst.index + 1]
        while after.op == "JUMP":
            after = after.target
        if after.op != "SEND":
            raise ValueError(f"cannot encode {inst}: no SEND follows")
        self.put("YIELD_FROM")
        self._change(self.chain(after.target.index), self.depths[after.target.index])
        self._jump_to(after.target.index)
        self.now = self.chain(inst.index)


_LOWERINGS: dict[str, Callable[[_Lowering, Instruction], None]] = {
    "APPLY": _Lowering._apply, "CALL": _Lowering._call, "CALL_EX": _Lowering._call_ex, "MAKE_FUNCTION": _Lowering._make_function,
    "FORMAT_VALUE": _Lowering._format_value, "UNPACK_EX": _Lowering._unpack_ex, "INTRINSIC": _Lowering._intrinsic,
    "RETURN_GENERATOR": _Lowering._generator, "GET_AWAITABLE": _Lowering._awaitable, "COPY": _Lowering._copy, "SWAP": _Lowering._swap,
    "JUMP": _Lowering._jump, "POP_JUMP_IF": _Lowering._jump_if, "FOR_ITER": _Lowering._for_iter, "BEFORE_WITH": _Lowering._before_with,
    "CHECK_EXC_MATCH": _Lowering._check_match, "MATCH_CLASS": _Lowering._match, "MATCH_KEYS": _Lowering._match,
    "SEND": _Lowering._send, "YIELD_VALUE": _Lowering._yield, "STORE_CELL": _Lowering._cell,
    **dict.fromkeys(CELL.values(), _Lowering._cell),
}


# -- placing


def _place(units: list[Unit], starts: list[int]) -> None:
    if any(unit.goal >= 0 and starts[unit.goal] < 0 for unit in units):
        raise ValueError("a jump into the middle of what is one operation on CPython 3.10")

    def reach(jump: Unit) -> int:
        goal = units[starts[jump.goal]].offset
        return (goal - jump.offset - jump.size if jump.op in RELATIVE else goal) // 2

    place(units, _width, reach)


def _width(unit: Unit) -> int:
    arg = unit.arg
    return 2 if arg <= 0xFF else 4 if arg <= 0xFFFF else 6 if arg <= 0xFFFFFF else 8


def _write(code: bytearray, unit: Unit) -> None:
    for shift in range(unit.size // 2 - 1, 0, -1):
        code += bytes((OPCODES["EXTENDED_ARG"], unit.arg >> 8 * shift & 0xFF))
    code += bytes((OPCODES[unit.op], unit.arg & 0xFF))


