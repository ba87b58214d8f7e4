"""Rules of exceptions and ``with``: raise, handlers, context managers (CPython: RAISE_VARARGS, PUSH_EXC_INFO, BEFORE_WITH ...)."""

from __future__ import annotations

from collections.abc import Iterator

from .._native import type_name
from ..bytecode import VERSION
from ..bytecode.ir import ExceptionHandler, Instruction
from ..errors import GraphBreak, UserRaise
from ..model.value import (
    ConstantVariable,
    ExceptionVariable,
    ObjectVariable,
    TracebackVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..semantics import core, lookup
from .clauses import handles_data
from .exits import may_end, may_mind
from .frame import InstructionTranslator as Tx
from .frame import rule
from .state import realize, set_context, user_error
from .words import no_manager


class PreviousException(VariableTracker):
    """What PUSH_EXC_INFO saved: the stack item that POP_EXCEPT restores.

    ``current`` is the handled exception, ``trace`` the traceback that it came with; ``active`` until POP_EXCEPT, though the item
    may stay on the stack after it.
    """

    __slots__ = ("current", "trace", "active")

    def __init__(self, current: VariableTracker) -> None:
        self.current = current
        self.trace = list(current.trace) if isinstance(current, ExceptionVariable) else []
        self.active = True
        self.source = None

    def earlier_traceback(self) -> TracebackVariable | None:
        """The one that CPython keeps for raising the exception again, where the exception has another one by now."""
        if not VERSION.keeps_tracebacks or not isinstance(self.current, ExceptionVariable) or self.current.trace == self.trace:
            return None
        made = TracebackVariable(self.current)
        made.trace = list(self.trace)
        return made


@rule("RAISE_VARARGS")
def raise_varargs(tx: Tx, inst: Instruction) -> None:
    if inst.arg == 0:
        if not tx.state.exceptions:
            raise GraphBreak("raised_exception", "bare raise of an exception that is handled outside of the trace")
        raise _raised(tx, _as_it_came(tx, tx.state.exceptions[-1]))
    cause = tx.pop() if inst.arg == 2 else None
    value = _instance(tx, tx.pop())
    if not isinstance(value, ExceptionVariable):
        raise GraphBreak("raised_exception", "raise of an exception made outside of the trace")  # it gets a traceback
    if cause is not None:
        if not (isinstance(cause, ConstantVariable) and cause.value is None):
            cause = _instance(tx, cause, "exception causes must derive from BaseException")
        value.cause = cause
    set_context(tx.state, value)
    raise _raised(tx, value)


def _raised(tx: Tx, value: VariableTracker) -> UserRaise:
    if not isinstance(value, ExceptionVariable) and any(frame.inst.handler is not None for frame in tx.state.frames):
        # Handlers rely on the exception having a traceback, which only raising it gives.
        raise GraphBreak("raised_exception", "an exception made outside of the trace is raised where the program may handle it")
    return UserRaise(value)


def _instance(tx: Tx, value: VariableTracker, otherwise: str = "exceptions must derive from BaseException") -> VariableTracker:
    if isinstance(value, ObjectVariable) and issubclass(type(value.value), type):
        cls, value = value, realize(core.call(tx, value, [], {}), tx.state)
        if issubclass(cls.value, BaseException) and not issubclass(value.python_type(), BaseException):
            raise GraphBreak("raised_exception", "an exception's class that makes something else")
    if not issubclass(value.python_type(), BaseException):
        raise UserRaise(user_error(TypeError, otherwise))
    return value


@rule("PUSH_EXC_INFO")
def push_exc_info(tx: Tx, inst: Instruction) -> None:
    value = tx.pop()
    tx.stack.append(PreviousException(value))
    tx.stack.append(value)
    tx.state.exceptions.append(value)


@rule("POP_EXCEPT")
def pop_except(tx: Tx, inst: Instruction) -> None:
    if not isinstance(tx.stack[-1], PreviousException):
        raise GraphBreak("raised_exception", "the handler was entered outside of the trace")
    tx.stack.pop().active = False  # type: ignore[attr-defined]
    tx.state.exceptions.pop()


@rule("CHECK_EXC_MATCH")
def check_exc_match(tx: Tx, inst: Instruction) -> None:
    match = tx.pop()
    value = realize(tx.stack[-1], tx.state)
    tx.stack.append(constant(_matches(tx, value.python_type(), match)))


def _matches(tx: Tx, cls: type, match: VariableTracker) -> bool:
    if isinstance(match, TupleVariable):
        return any([_matches(tx, cls, realize(m, tx.state)) for m in match.items])  # noqa: C419 - all of them are checked
    if isinstance(match, ObjectVariable) and issubclass(type(match.value), type) and issubclass(match.value, BaseException):
        lookup.guard_bases(tx, cls)
        return lookup.inherits(cls, match.value)
    raise UserRaise(user_error(TypeError, "catching classes that do not inherit from BaseException is not allowed"))


@rule("RERAISE")
def reraise(tx: Tx, inst: Instruction) -> None:
    value = tx.pop()
    raise _raised(tx, value if inst.arg == 1 else _as_it_came(tx, value))  # with 1, it is one that its handler raised


def _as_it_came(tx: Tx, value: VariableTracker) -> VariableTracker:
    """The exception being handled, to be raised again; with the traceback that its handler got, where CPython keeps that."""
    if VERSION.keeps_tracebacks and isinstance(value, ExceptionVariable):
        items = (item for frame in reversed(tx.state.frames) for item in reversed(frame.stack) if isinstance(item, PreviousException))
        handled = next((item for item in items if item.active), None)
        if handled is not None and handled.current is value:
            value.trace = list(handled.trace)
    return value


@rule("BEFORE_WITH")
def before_with(tx: Tx, inst: Instruction) -> None:
    manager = tx.pop()
    enter = core.special_method(tx, manager, "__enter__")
    leave = core.special_method(tx, manager, "__exit__")
    if enter is None or leave is None:
        raise UserRaise(user_error(*no_manager(type_name(manager.python_type()), enter is not None)))
    tx.stack.append(leave)
    tx.state.waiting, tx.drops = tx.breakable, False
    try:
        tx.stack.append(core.call(tx, enter, [], {}))
    except GraphBreak as broken:
        if broken.reason in ("unsupported_builtin_method", "unknown_c_function"):
            broken.reason = "unsupported_context"
        raise


@rule("WITH_EXCEPT_START")
def with_except_start(tx: Tx, inst: Instruction) -> None:
    # stack: exit_func, lasti, previous exception, exception
    value = realize(tx.stack[-1], tx.state)
    leave = realize(tx.stack[-4], tx.state)
    if isinstance(value, ExceptionVariable):
        cls: VariableTracker = core.wrap_class(tx, value.cls)
        trace: VariableTracker = TracebackVariable(value)
    else:
        cls = core.call(tx, core.wrap_constant(type), [value], {})
        trace = core.get_attr(tx, value, "__traceback__")
    tx.stack.append(core.call(tx, leave, [cls, value, trace], {}))


@rule("CLEANUP_THROW")
def cleanup_throw(tx: Tx, inst: Instruction) -> None:
    """Behind a ``yield from`` into which an exception was thrown (CPython 3.12 and later): a StopIteration ends that."""
    value = tx.pop()
    tx.popn(2)
    if not issubclass(value.python_type(), StopIteration):
        raise UserRaise(value)
    tx.stack.append(core.value_of_stop(tx, value))


def _handlers(frame: Tx, of_data: bool = True) -> Iterator[tuple[ExceptionHandler, bool]]:
    """The handlers that an error of the current instruction would meet, innermost first; of each, whether it is the exit of a ``with``.

    What the compiler puts behind every handler, to restore the exception that was handled before, is no handler of the program; nor is
    what makes a RuntimeError of a generator's StopIteration, and, ``of_data``, what is for exceptions that no operation on tensors raises.
    """
    handler, instructions = frame.inst.handler, frame.instructions
    while handler is not None:
        start = handler.target.index
        ops = [inst.op for inst in instructions[start : start + 3]]
        if ops == ["COPY", "POP_EXCEPT", "RERAISE"]:
            handler = instructions[start + 2].handler
        elif ops[:2] == ["CALL_INTRINSIC_1", "RERAISE"]:
            handler = instructions[start + 1].handler
        else:
            leaves = ops[1:2] == ["WITH_EXCEPT_START"]
            if leaves or not of_data or handles_data(frame, start):
                yield handler, leaves
            handler = instructions[start + 1].handler


def _exit_of(frame: Tx, handler: ExceptionHandler) -> VariableTracker | None:
    """The method that leaves a ``with`` block, which lies on the stack below what the block has put there."""
    return frame.stack[handler.depth - 1] if 0 < handler.depth <= len(frame.stack) else None


def may_handle(frame: Tx) -> bool:
    """Whether an exception of any class, raised by the current instruction, may meet a handler, or the exit of a ``with``."""
    return next(_handlers(frame, of_data=False), None) is not None


def is_covered(frame: Tx) -> bool:
    """Whether an error of the current instruction would meet a handler of the program, or the exit of a ``with``."""
    return next(_handlers(frame), None) is not None


def catches(frame: Tx) -> bool:
    """Whether a handler of the program covers the current instruction, or the exit of a ``with`` that may mind an exception."""
    return any(not leaves or (leave := _exit_of(frame, handler)) is None or (may_mind if leave.source is None else may_end)(leave)
               for handler, leaves in _handlers(frame))


def entered_before(frame: Tx) -> Iterator[VariableTracker]:
    """The exits, innermost first, of blocks around the current instruction that were entered before a break: only they undo the entry."""
    for handler, leaves in _handlers(frame):
        leave = _exit_of(frame, handler) if leaves else None
        if leave is not None and leave.source is not None:
            yield leave
