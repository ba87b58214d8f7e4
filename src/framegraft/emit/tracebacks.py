"""Tracebacks as eager mode has them: the program's frames and lines, for errors that have passed transformed code.

What a frame was made of ran as other code: transformed code that calls a graph, then resume functions. An error notes each
of these, and a graph's operations, and calls that were traced into, it notes nowhere. Where an error leaves transformed code
its newest entries are put right: links of this very frame, and of the code around a graph that failed, give way to one for
each frame of the program.
"""

from __future__ import annotations

import functools
import operator
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, NamedTuple

from torch.fx import GraphModule

from .. import _native
from ..bytecode.code import qualified_name, replace_code
from ..bytecode.decode import decode
from ..bytecode.encode import encode
from .rescue import AROUND

GRAPH = -1


class Function(NamedTuple):
    """What a traceback shows of a function, without its code: an entry of the cache must not keep that alive."""

    filename: str
    name: str
    qualname: str
    firstlineno: int

    @classmethod
    def of(cls, code: CodeType) -> Function:
        return cls(code.co_filename, code.co_name, qualified_name(code), code.co_firstlineno)

    def is_of(self, code: CodeType) -> bool:
        """Whether ``code`` is a part of the function: its own, transformed, or a resume function's."""
        return self[:2] == (code.co_filename, code.co_name)

    def frame(self, line: int) -> FrameType:
        """A frame at a line that stands for one of this function in a traceback: calls that were traced into have none.

        A generator's that has not begun: it has no caller, which it would keep alive, and with it all that the callers hold.
        """
        return FunctionType(_stub(self, line), {})().gi_frame


@functools.lru_cache(maxsize=1000)
def _stub(function: Function, line: int) -> CodeType:
    instructions = decode(_STUB)
    for inst in instructions:
        inst.positions = (line, None, None, None)  # f_lineno; on CPython 3.10 that is the first of the function
    template = replace_code(_STUB, co_filename=function.filename, co_firstlineno=function.firstlineno)
    stub = encode(instructions, template, name=function.name, qualname=function.qualname)
    _native.set_skip(stub, True)
    return stub


def _never() -> Iterator[None]:
    yield


_STUB = _never.__code__


class Passages:
    """Where errors can come from in one transformed code.

    ``resumed``: the resume functions that it calls, and how many calls below this frame theirs were. ``callers``: of the frames
    between, outermost first, the places where they had called the next one. ``between``: functions that stand for these; what is called
    through them leaves the entries itself.
    ``anew``: the frame as it was written, which runs where the graph fails.
    """

    def __init__(self, function: Function, graph_name: str, resumed: dict[str, int], between: set[str],
                 callers: list[tuple[Function, int]], anew: CodeType | None) -> None:
        self.function = function
        self.graph_name = graph_name
        self.resumed = resumed
        self.rests = [name for name, level in resumed.items() if level == 0]  # of this very frame, which is seen once
        self.between = between
        self.callers = callers
        self.anew = anew
        self._calls: dict[int, tuple[CodeType, list[int], list[tuple[int | None, bool]]]] = {}

    def mend(self, error: BaseException, ran: CodeType | None) -> None:
        """Put the error's traceback right. ``ran``: the transformed code that it has left; None where only the graph was called."""
        if ran is not None and ran.co_filename != self.function.filename:
            return  # a file that is stepped through
        own, trace, around = None, error.__traceback__, True
        while trace is not None:
            code, frame = trace.tb_frame.f_code, trace.tb_frame
            if around and code is ran and (own is None or own.tb_frame is frame):
                own, around = trace, False
            elif code in AROUND:
                around = True
            else:
                break
            trace = trace.tb_next
        if trace is not None and trace.tb_frame.f_code is self.anew:
            error.__traceback__ = trace
            return
        if own is not None and trace is not None and self.function.is_of(trace.tb_frame.f_code) and _raises_again(ran, own.tb_lasti):
            error.__traceback__ = trace  # from the line that it came from first
            return
        came_from, known = (GRAPH, False) if ran is None else (None, False) if own is None else self._call_at(ran, own.tb_lasti)
        if trace is None or came_from is None:
            error.__traceback__ = own or trace  # an instruction of the program; others have raised the error again
        elif came_from == GRAPH:
            error.__traceback__ = self._out_of_graph(own, trace)
        elif came_from == 0 and self.function.is_of(trace.tb_frame.f_code):
            error.__traceback__ = trace
        elif own is not None:
            callers = [] if known else self.callers[: max(came_from - 1, 0)]
            between = [(function.frame(line), line) for function, line in callers]
            error.__traceback__ = chained([(own.tb_frame, own.tb_lineno), *between], trace)

    def caught(self, error: BaseException, level: int) -> None:
        """As ``mend``, for an error that a handler is about to catch, in the frame ``level`` calls below this one."""
        own = error.__traceback__
        if own is None or own.tb_next is None or own.tb_frame.f_code.co_filename != self.function.filename:
            return
        came_from, known = self._call_at(own.tb_frame.f_code, own.tb_lasti)
        if came_from is not None and came_from > 0:
            trace: TracebackType | None = own.tb_next
            callers = [] if known else self.callers[max(level - 1, 0) : came_from - 1]
            for _ in range(level - 1 if known else 0):
                trace = trace.tb_next if trace is not None else None
            between = [(function.frame(line), line) for function, line in callers]
            places = between if level else [(own.tb_frame, own.tb_lineno), *between]
            error.__traceback__ = chained(places, trace)

    def _out_of_graph(self, own: TracebackType | None, trace: TracebackType) -> TracebackType:
        lines = _lines(trace)
        known = bool(lines) and lines[0][::2] == self.function[:2]
        line = lines[0][1] if known else own.tb_lineno if own is not None else self.function.firstlineno
        frame = own.tb_frame if own is not None else self.function.frame(line)
        inner = [(Function(file, name, name, line).frame(line), line) for file, line, name in lines[1:]] if known else []
        return chained([(frame, line), *inner], trace)

    def _call_at(self, ran: CodeType, offset: int) -> tuple[int | None, bool]:
        """What the instruction calls: GRAPH; or a resume function, by its level in ``resumed``; None: anything else. And whether it is
        called through functions that stand for the frames between."""
        found = self._calls.get(id(ran))
        if found is None:
            found = self._calls[id(ran)] = (ran, *self._find_calls(ran))
        _, offsets, calls = found
        at = bisect_right(offsets, offset) - 1
        return calls[at] if at >= 0 else (None, False)

    def _find_calls(self, ran: CodeType) -> tuple[list[int], list[tuple[int | None, bool]]]:
        found: list[tuple[int, tuple[int | None, bool]]] = []
        loaded: int | None = None
        between = False
        for inst in decode(ran):  # as it was emitted, which is not how it lies
            if inst.op == "LOAD_GLOBAL" and inst.arg == self.graph_name:
                loaded = GRAPH
            elif inst.op == "LOAD_GLOBAL" and inst.arg in self.resumed:
                loaded = self.resumed[inst.arg]
            elif inst.op == "LOAD_GLOBAL" and inst.arg in self.between:
                between = True
            if inst.offset >= 0:
                found.append((inst.offset, (loaded, between) if inst.op == "CALL" else (None, False)))
            if inst.op == "CALL":
                loaded, between = None, False
        found.sort(key=operator.itemgetter(0))
        return [offset for offset, _ in found], [call for _, call in found]


class Caught:
    """Called by transformed code with what a handler is about to catch, in the frame ``level`` calls below that code's."""

    __name__ = "caught"
    passages: Passages

    def __init__(self, level: int) -> None:
        self.level = level

    def __call__(self, error: BaseException) -> BaseException:
        self.passages.caught(error, self.level)
        return error


def _raises_again(code: CodeType | None, offset: int) -> bool:
    """Whether the instruction raises what its frame handles: that adds nothing to a traceback."""
    inst = next((i for i in decode(code) if i.offset == offset), None) if code is not None else None
    return inst is not None and (inst.op == "RERAISE" or inst.op == "RAISE_VARARGS" and inst.arg == 0)


def in_the_end(error: BaseException) -> BaseException:
    """Called by transformed code with an error that it is about to raise again, and that its frame does not catch.

    The error came from other code of the same frame, which has handed its variables over. A traceback keeps them as they are
    in the end: objects in them live as long as it does, and a debugger finds them there.
    """
    trace, last = error.__traceback__, sys._getframe(1)
    if trace is not None and trace.tb_frame is not last and Function.of(last.f_code).is_of(trace.tb_frame.f_code):
        kept = {name for name in last.f_locals if not name.startswith("__")}
        if not kept.issubset(trace.tb_frame.f_locals):
            error.__traceback__ = TracebackType(trace.tb_next, last, -1, trace.tb_lineno)
    return error


def chained(places: list[tuple[FrameType, int]], trace: TracebackType | None) -> TracebackType:
    """``trace`` below links for these frames, outermost first. Without an instruction: the line is shown as it is."""
    for frame, line in reversed(places):
        trace = TracebackType(trace, frame, -1, line)
    assert trace is not None
    return trace


def _lines(trace: TracebackType | None) -> list[tuple[str, int, str]]:
    """(file, line, function) of each frame of the program that was being traced when the failing operation was captured."""
    found: list[tuple[str, int, str]] = []
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        if isinstance(owner, GraphModule) and trace.tb_frame.f_code is type(owner).forward.__code__:
            found = _of_operation(owner, trace.tb_lineno) or found
        trace = trace.tb_next
    return found


def _of_operation(module: GraphModule, line: int) -> list[tuple[str, int, str]]:
    """Where the operation on a line of a graph's code comes from."""
    code: Any = module.graph.python_code("self")
    index = (code._lineno_map or {}).get(line - (getattr(code, "_prologue_start", None) or 0))  # 2.8 has it without
    if index is None:
        return []
    trace = list(module.graph.nodes)[index].meta.get("stack_trace") or ""
    return [(m[1], int(m[2]), m[3]) for m in re.finditer(r'^ *File "(.+)", line (\d+), in (.+)$', trace, re.MULTILINE)]
