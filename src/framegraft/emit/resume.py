"""Resume functions: the rest of a function from one instruction on, with the live stack and locals as parameters.

The code is the original function's, behind a prologue that restores cells and stack and jumps to the instruction.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Sequence
from types import CodeType, FunctionType
from typing import Any

from .. import _native
from ..bytecode.code import parameter_count, qualified_name
from ..bytecode.encode import encode
from ..bytecode.flow import live_locals, perhaps_bound, remove_unreachable, stored_later
from ..bytecode.ir import ExceptionHandler, Instruction
from ..interp.frame import _DECODED, CALLS_REST, ORIGIN, PROLOGUE, RULES, _unsupported, instructions_of, origin_of
from ..interp.unwind import PreviousException
from ..model.source import BUILTINS, instr, pinned
from ..model.value import NONE, FunctionVariable, GeneratorVariable, VariableTracker

_WATCHED: dict[int, weakref.ref[CodeType]] = {}  # id(code) -> code: when it goes, what is known of it does
_REWRITTEN: dict[int, list[Instruction]] = {}
_LIVE: dict[int, list[frozenset[str]]] = {}
_REPLACED: dict[int, list[frozenset[str]]] = {}

_AGAIN: dict[int, Instruction] = {}  # id(resume code) -> its first instruction, where a graph has been broken already

STACK, CELL, TRACE = "___stack", "___cell_", "___trace"
REST = "___rest"  # the parameter of resume functions for frames that tracebacks may hold: a list, to which they add their own frame


def breaks_again(code: CodeType, inst: Instruction) -> bool:
    """Whether a break at ``inst`` is the very one that led to the resume function ``code``."""
    return _AGAIN.get(id(code)) is inst


def _clone(instructions: list[Instruction]) -> list[Instruction]:
    copies = []
    for inst in instructions:
        new = Instruction(inst.op, inst.arg)
        new.offset, new.positions, new.run, new.index = inst.offset, inst.positions, inst.run, inst.index
        new.place = inst.place
        copies.append(new)
    for inst, new in zip(instructions, copies, strict=True):
        if inst.target is not None:
            new.target = copies[inst.target.index]
        if inst.handler is not None:
            handler = inst.handler
            new.handler = ExceptionHandler(copies[handler.target.index], handler.depth, handler.lasti)
    return copies


def body_of(code: CodeType) -> list[Instruction]:
    """The function's instructions as resume functions have them: ``super()`` gets its arguments spelt out."""
    found = _REWRITTEN.get(id(code))
    if found is None:
        original = instructions_of(code)
        found = _clone(original)
        if "__class__" in code.co_freevars and code.co_argcount:
            found = _explicit_super(found, code)
        _REWRITTEN[id(code)] = found
        _LIVE[id(code)] = live_locals(found)
        _watch(code)
        for place, inst in enumerate(found):
            inst.place = place
        rest = iter(found)
        for inst in original:
            match = next(rest)
            inst.place = match.place
            while match.op != inst.op:  # what was put in front of it belongs to it
                match = next(rest)
    return found


def _watch(code: CodeType) -> None:
    """Forget ``code`` when it goes. One that has resume functions stays (``ORIGIN``)."""
    key = id(code)
    tables: tuple[dict[int, Any], ...] = (_REWRITTEN, _LIVE, _REPLACED, _WATCHED)

    def forget(_: Any) -> None:
        for table in tables:
            table.pop(key, None)

    _WATCHED[key] = weakref.ref(code, forget)


def _explicit_super(instructions: list[Instruction], code: CodeType) -> list[Instruction]:
    first = code.co_varnames[0]
    out: list[Instruction] = []
    for before, inst in zip([None, *instructions], instructions, strict=False):
        if before is not None and before.op == "LOAD_GLOBAL" and before.arg == "super" and inst.op == "CALL" and inst.arg[0] == 0:
            load = "LOAD_DEREF" if first in code.co_cellvars else "LOAD_FAST"
            for op, arg in (("LOAD_DEREF", "__class__"), (load, first)):
                extra = Instruction(op, arg)
                extra.offset, extra.positions, extra.handler, extra.run = -1, inst.positions, inst.handler, RULES[op]
                out.append(extra)
            inst.arg = (2, ())
        out.append(inst)
    for index, inst in enumerate(out):
        inst.index = index
    return out


def in_order(names: Iterable[str], code: CodeType) -> list[str]:
    """As a frame drops its variables; those of comprehensions that run in it (``x.1``) are gone by then."""
    place = {name: i for i, name in enumerate(code.co_varnames)}
    return sorted(names, key=lambda name: (place.get(name, -1), name))


class ResumePoint:
    """Where to go on: the original function's code, the instruction's offset, and what is passed."""

    def __init__(
        self, code: CodeType, target: Instruction, depth: int, bound: set[str], ending: list[str], cells: list[str],
        block: ExceptionHandler | None, again: bool = False, is_held: bool = False, callee: Callee | None = None, keeps: bool = False,
    ) -> None:
        """``block``: what covers the instruction that was interrupted. ``callee``: the value on the top of the stack is that of a call
        which is still to be made. ``keeps``: the rest is given all variables, as its frame had them."""
        self.code = origin_of(code)
        body = body_of(self.code)
        self.index = target.place
        self.offset = target.offset
        self.depth = depth
        live = _LIVE[id(self.code)]
        read, replaced = live[self.index], replaced_at(self.code, target)
        # The block that an error at this place is raised in, where the instruction itself lies behind that, or is its handler.
        self.block = None if block is None or _lies_in(body, self.index, block) else block
        if self.block is not None:
            handled = live[self.block.target.place]
            read, replaced = read | handled, replaced - handled
        # Those that are not bound are passed as None, which nobody reads: one function serves the first round of a loop and the others.
        # Frames drop their variables in this order.
        kept = {name for name in bound if not name.startswith(CELL)} if keeps else set()
        self.names = in_order((read & bound | replaced | kept).difference(ending), self.code) + in_order(ending, self.code)
        self.cells = cells
        self.is_held = is_held  # perhaps by a traceback
        self.callee = callee
        own = [f"{STACK}{i}" for i in range(depth - (callee is not None))] + [CELL + c for c in cells] + self.names
        self.passed_on = [] if callee is None else [_inner_name(name) for name in callee.arguments]
        self.arguments = own + self.passed_on + [REST] * is_held
        self.again = again  # the instruction has broken a graph already
        within = None if self.block is None else (self.block.target.place, self.block.depth)
        self.key = (id(self.code), self.index, tuple(self.arguments), again, within, callee and callee.key)
        self.body = body


class Callee:
    """The rest of a frame that another one waits for: the function, what it takes, and the instruction that had called it."""

    def __init__(self, installed: Any, arguments: list[str], call: Instruction, dropped: bool) -> None:
        self.installed = installed  # the CompiledFunction, and its name in the globals of the frame that waits
        self.arguments = arguments
        self.call = call
        self.dropped = dropped  # what it returns: the frame waits for its end
        self.key = (id(installed), call.offset, call.positions, dropped)


def _inner_name(name: str) -> str:
    """The name of a callee's parameter in its caller: ``x``, ``___1_x``, ``___2_x``, ..."""
    found = re.fullmatch("___([0-9]+)_(.*)", name)
    return f"___{int(found[1]) + 1}_{found[2]}" if found else f"___1_{name}"


def _lies_in(body: list[Instruction], index: int, block: ExceptionHandler) -> bool:
    """Whether an error at the instruction reaches the handler of ``block``, perhaps by way of others."""
    seen = set()
    handler = body[index].handler
    while handler is not None and handler.target.index not in seen:
        if handler.target.index == block.target.place:
            return True
        seen.add(handler.target.index)
        handler = handler.target.handler
    return False


_CODES: dict[tuple, CodeType] = {}
_CALLING: weakref.WeakValueDictionary[tuple, CodeType] = weakref.WeakValueDictionary()  # those that call a callee's, while in use
_POINTS: dict[int, ResumePoint] = {}  # id(resume code) -> what it was made for


def resume_code(point: ResumePoint) -> CodeType:
    codes = _CODES if point.callee is None else _CALLING
    found = codes.get(point.key)
    if found is None:
        found = codes[point.key] = _build(point)
        _POINTS[id(found)] = point
    return found


def _build(point: ResumePoint) -> CodeType:
    prologue, body, target = _going_on(point)
    uses = None if point.callee is None else point.callee.installed
    made = _finish(point.code, prologue, body, target, _name_of(point), point.arguments, point.cells, uses=uses)
    if point.again:
        _AGAIN[id(made)] = target
    return made


def _going_on(point: ResumePoint, function: Any = None) -> tuple[list[Instruction], list[Instruction], Instruction]:
    """The prologue, the body, and the instruction of it that the prologue ends at. ``function``: see ``_prologue``."""
    body, target = _body_from(point)
    return [*_prologue(point, body, function), instr("JUMP", None, target)], body, target


def _body_from(point: ResumePoint) -> tuple[list[Instruction], Instruction]:
    """The function's instructions, and that with which the rest goes on. Where it returns at once nothing else is needed."""
    target = point.body[point.index]
    if target.op != "RETURN_VALUE" or point.callee is None or point.callee.call.handler is not None:
        body = _clone(point.body)
        return body, body[point.index]
    only = instr(target.op)
    only.offset, only.positions, only.run, only.place = target.offset, target.positions, target.run, target.place
    return [only], only


def _prologue(point: ResumePoint, body: list[Instruction], function: Any = None) -> list[Instruction]:
    """What puts the frame into the state in which it goes on. ``function``: what is called in the place of the callee's rest."""
    made = _noting_frame() if point.is_held else []
    made += restore_cells(point.cells)
    for i in range(point.depth - (point.callee is not None)):
        made += moved(f"{STACK}{i}")
    if point.callee is not None:
        load = instr("LOAD_CONST", function) if function is not None else instr("LOAD_GLOBAL", point.callee.installed.name)
        load.run = _load_rest
        made += [load, *_calling(point.callee, point.passed_on, body)]
    return made


def _calling(callee: Callee, arguments: list[str], body: list[Instruction]) -> list[Instruction]:
    """The call of the callee's rest, where the frame had called the callee itself: at its line, under its handler."""
    call = instr("CALL", (len(arguments), ()))
    call.place, call.positions = CALLS_REST, callee.call.positions
    handler = callee.call.handler
    if handler is not None:
        call.handler = ExceptionHandler(body[handler.target.place], handler.depth, handler.lasti)
    return [*(i for name in arguments for i in moved(name)), call, *([instr("POP_TOP")] if callee.dropped else [])]


def _load_rest(tx: Any, inst: Instruction) -> None:
    """A trace goes into the rest as into any function; it is the tracer's own, and needs no guard."""
    fn = tx.scope.real[inst.arg].fn
    known = tx.state.scope(fn.__globals__, pinned(fn).child("FGLOBALS"), BUILTINS)
    tx.push(FunctionVariable(fn.__code__, known, fn.__qualname__))


def _name_of(point: ResumePoint) -> str:
    return f"<resume in {point.code.co_name}>"


class Raised:
    """An error on its way into a frame: called with the exception in whose handler that was to go on, or None.

    It is given away: its traceback will lead to the code that holds this, and the garbage collector does not look into code.
    """

    __name__ = "raised"

    def __init__(self, error: BaseException) -> None:
        self.errors = [error]

    def __call__(self, handled: BaseException | None) -> BaseException:
        error = first = self.errors.pop()
        try:
            known = {id(handled)}
            while handled is not None and id(first) not in known:
                known.add(id(first))
                if first.__context__ is None:
                    first.__context__ = handled
                    break
                first = first.__context__
            return error
        finally:
            del error, first, handled


def raising_code(code: CodeType, error: BaseException) -> CodeType | None:
    """The resume function ``code``, but for that it raises ``error`` where it would go on: the blocks around that place get their
    ends. None for other functions.

    The block is that of the interrupted instruction, as if it had raised the error: behind a branch or a ``return`` the place itself
    may be the end of the block, which nothing covers, or the handler that the instruction's own exception has led to.
    """
    point = _POINTS.get(id(code))
    if point is None:
        return None
    if point.callee is not None:
        rest = point.callee.installed.obj.fn
        inner = raising_code(rest.__code__, error)
        assert inner is not None
        prologue, body, target = _going_on(point, FunctionType(inner, rest.__globals__, rest.__name__))
        return encode_rest(point.code, prologue, body, target, _name_of(point), point.arguments, point.cells)[0]
    body = _clone(point.body)
    target, block = body[point.index], point.block
    handles = block is not None and block.target.place == point.index
    raising = instr("RAISE_VARARGS", 1)
    raising.handler = target.handler if block is None else ExceptionHandler(body[block.target.place], block.depth, block.lasti)
    handled = instr("COPY", 2) if handles else instr("LOAD_CONST", None)
    prologue = [*_prologue(point, body), instr("LOAD_CONST", Raised(error)), handled, instr("CALL", (1, ())), raising]
    told = next((inst for inst in body[point.index :] if inst.positions and inst.positions[0]), target)  # a handler's start has no line
    return encode_rest(point.code, prologue, body, told, _name_of(point), point.arguments, point.cells)[0]


def moved(name: str) -> list[Instruction]:
    """A local onto the stack, which is to hold it alone."""
    return [instr("LOAD_FAST", name), instr("DELETE_FAST", name)]


def _noting_frame() -> list[Instruction]:
    """``note_frame(___rest); del ___rest``: a trace leaves the call to the transformed code. Deleted, so that there is no cycle."""
    call = instr("CALL", (1, ()))
    call.run = _noted_later
    return [instr("LOAD_CONST", _native.note_frame), instr("LOAD_FAST", REST), call, instr("POP_TOP"), instr("DELETE_FAST", REST)]


def _noted_later(tx: Any, _: Instruction) -> None:
    tx.popn(2)
    tx.push(NONE)


def restore_cells(names: list[str]) -> list[Instruction]:
    return [i for name in names for i in (*moved(CELL + name), instr("STORE_CELL", name))]


def _finish(
    code: CodeType, prologue: list[Instruction], body: list[Instruction], target: Instruction, qualname: str, argnames: list[str],
    cells: list[str], free: Sequence[str] = (), uses: Any = None,
) -> CodeType:
    """Code that is traced and run. It lives on, or if it ``uses`` an installed name, keeps that alive and goes with its last user."""
    made, instructions = encode_rest(code, prologue, body, target, qualname, argnames, cells, free)
    if uses is not None:
        made = made.replace(co_consts=(*made.co_consts, uses))
    key, tables = id(made), (_DECODED, ORIGIN, _POINTS)

    def forget(_: Any) -> None:
        for table in tables:
            table.pop(key, None)

    _DECODED[key] = (made if uses is None else weakref.ref(made, forget), instructions)
    ORIGIN[key] = code
    return made


def encode_rest(
    code: CodeType, prologue: list[Instruction], body: list[Instruction], target: Instruction, qualname: str, argnames: list[str],
    cells: list[str], free: Sequence[str] = (),
) -> tuple[CodeType, list[Instruction]]:
    for inst in prologue:
        if inst.place != CALLS_REST:
            inst.place = PROLOGUE
            inst.positions = target.positions
        inst.run = inst.run or RULES.get(inst.op, _unsupported)
    instructions = remove_unreachable(prologue + body)
    for index, inst in enumerate(instructions):
        inst.index = index
    made = encode(
        instructions, code, qualname=qualname, argnames=argnames, cellvars=tuple(cells), freevars=tuple(free),
        no_make_cell=set(cells), flags=code.co_flags & ~(4 | 8 | 16),
    )
    return made, instructions


class Suspended:
    """A generator that the trace has made: code that makes a real one, and the trackers of its arguments.

    The code is the generator's own, behind a prologue that restores cells and stack. One that has started then yields once,
    under the handler of the yield where it was suspended, and goes on behind that. One that waits for another iterator goes to the
    very SEND that waits, which is given a stand-in (``_native.Delegate``): so what is thrown into it reaches the iterator.
    """

    def __init__(self, frame: Any, started: bool) -> None:
        self.code = frame.code
        self.frame = frame
        body_of(self.code)
        target = frame.instructions[frame.ip if started else 1]
        self.place: int = target.place
        live = live_at(self.code, target)
        # A generator runs code when it dies: it is held for as long as in eager mode, also where nothing reads the variable any more.
        names = sorted(n for n, held in frame.locals.items() if n in live or type(held) is GeneratorVariable and not held.finished)
        self.stack = frame.stack
        before = frame.instructions[frame.inst.index - 1] if started and frame.inst.op == "YIELD_VALUE" else None
        self.delegates = before is not None and before.op == "SEND" and before.place >= 0
        if before is not None and self.delegates:
            self.place = before.place
        # Exceptions that the generator is handling; of each, whether it lies on the stack once more.
        self.handled = tuple(
            (i, i + 1 < len(self.stack) and self.stack[i + 1] is item.current)
            for i, item in enumerate(self.stack) if isinstance(item, PreviousException) and item.active)
        earlier = {i: self.stack[i].earlier_traceback() for i, _ in self.handled}
        traces = {i: trace for i, trace in earlier.items() if trace is not None}
        # Variables of functions around stay free ones: what is said of one without a value depends on that.
        self.free = [c for c in frame.cells if c in origin_of(self.code).co_freevars]
        self.cells = [c for c in frame.cells if c not in self.free]
        self.argnames = [*(f"{STACK}{i}" for i in range(len(self.stack))), *(f"{TRACE}{i}" for i in traces),
                         *(CELL + c for c in self.cells), *names]
        values = [item.current if isinstance(item, PreviousException) and item.active else item for item in self.stack]
        self.values: list[VariableTracker] = [
            *(NONE if isinstance(v, PreviousException) else v for v in values), *traces.values(), *(frame.cells[c] for c in self.cells),
            *(frame.locals[n] for n in names), *(frame.cells[c] for c in self.free)]
        self.started = started

    def build(self) -> CodeType:
        place = self.frame.inst.place if self.started else -1
        key = (id(self.code), self.place, place, tuple(self.argnames), tuple(self.free), self.handled, self.delegates)
        found = _CODES.get(key)
        if found is None:
            found = _CODES[key] = self._build(place)
        return found

    def _build(self, place: int) -> CodeType:
        body = _clone(body_of(self.code))
        prologue = [instr("RETURN_GENERATOR"), *restore_cells(self.cells)]
        handled = dict(self.handled)
        skip = -1
        for i in range(len(self.stack)):
            if i == skip:
                prologue.append(instr("DELETE_FAST", f"{STACK}{i}"))
                continue
            prologue += moved(f"{STACK}{i}")
            if i in handled:
                prologue.append(instr("PUSH_EXC_INFO"))
                if f"{TRACE}{i}" in self.argnames:
                    prologue += [instr("LOAD_CONST", _native.set_handled_traceback), *moved(f"{TRACE}{i}"), instr("CALL", (1, ())),
                                 instr("POP_TOP")]
                skip = i + 1 if handled[i] else -1
                if not handled[i]:
                    prologue.append(instr("POP_TOP"))
        if self.delegates:
            prologue.append(instr("LOAD_CONST", None))
        elif self.started:
            suspended = instr("YIELD_VALUE", body[place].arg)
            suspended.handler = body[place].handler
            prologue += [instr("LOAD_CONST", None), suspended]
        prologue.append(instr("JUMP", None, body[self.place]))
        return _finish(self.code, prologue, body, body[self.place], qualified_name(self.code), self.argnames, self.cells, self.free)


def live_at(code: CodeType, inst: Instruction) -> frozenset[str]:
    """Live locals of the original function before an instruction."""
    origin = origin_of(code)
    body_of(origin)
    return _LIVE[id(origin)][inst.place]


def replaced_at(code: CodeType, inst: Instruction) -> frozenset[str]:
    """Locals that may be bound before an instruction of the original function and are not read, but perhaps stored, behind it."""
    origin = origin_of(code)
    body = body_of(origin)
    found = _REPLACED.get(id(origin))
    if found is None:
        params = origin.co_varnames[: parameter_count(origin)]
        found = _REPLACED[id(origin)] = [
            later & bound - live
            for later, bound, live in zip(stored_later(body), perhaps_bound(body, params), _LIVE[id(origin)], strict=True)]
    return found[inst.place]
