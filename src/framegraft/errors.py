"""Every exception of the package: the public ones (re-exported by ``framegraft.exc``) and three that steer a trace.

``GraphBreak``, ``UserRaise`` and ``Restart`` never leave the package. They are no ``FramegraftError``, so a handler
meant for users' errors cannot catch one by accident.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .reasons import reason as look_up_reason

StackEntry = tuple[str, int, str]  # (file name, line number from 1, function name)


class Place(tuple[str, int, str]):
    """A ``StackEntry`` that may know its columns: (last line, first column, column after the last), in bytes of UTF-8."""

    columns: tuple[int | None, int | None, int | None] | None

    def __new__(cls, entry: StackEntry, columns: Any = None) -> Place:
        made = super().__new__(cls, entry)
        made.columns = columns if columns is not None and None not in columns else None
        return made


class FramegraftError(Exception):
    """Base class of every error that Framegraft raises on purpose."""


class ConfigError(FramegraftError):
    """A setting, log artifact or option that does not exist, or a value of the wrong type."""


class InvalidBackend(FramegraftError):
    """No backend of that name is registered, or the given object is no compiler."""


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it came of."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


class BackendCompilerFailed(FramegraftError):
    """A backend raised, or returned something that is no callable; the original error is ``__cause__``.

    Attributes:
        backend_name: what the user knows the backend by.
    """

    def __init__(self, backend_name: str, detail: str = "", hint: str = "") -> None:
        self.backend_name = backend_name
        self.detail = detail
        self.hint = hint or look_up_reason("backend_failed").hint
        super().__init__(backend_name, detail, hint)

    def __str__(self) -> str:
        return f"backend {self.backend_name!r} failed: {self.detail or 'no detail'}\n  Hint: {self.hint}"


class InternalError(FramegraftError):
    """A bug of Framegraft. In production the frame runs in eager mode, with a warning that asks for a report."""


class FrameChanged(InternalError):
    """A guard does not hold on the frame that was captured: the tracer erred, or something changed what it had seen.

    ``of_sizes``: the guard computes with sizes or numbers, perhaps with more than 64 bits.
    """

    def __init__(self, message: str, of_sizes: bool = False) -> None:
        super().__init__(message)
        self.of_sizes = of_sizes


class DecompileError(FramegraftError):
    """Code that cannot be turned back into source that is proven to do the same."""


class ExportError(FramegraftError):
    """A function that is no single graph of its arguments."""


class RecompileError(FramegraftError):
    """A function would be captured again while ``config.error_on_recompile`` or the stance ``fail_on_recompile`` holds."""


class ConstraintViolation(FramegraftError):
    """A size that was marked with ``mark_dynamic`` can have one value only."""


class RecompileLimitExceeded(RecompileError):
    """A code object reached ``config.cache_size_limit`` entries where falling back to eager is not allowed."""


class DoubleBackwardError(FramegraftError, RuntimeError):
    """A second derivative of a graph whose compiler knows the first one only."""


class Unsupported(FramegraftError):
    """A graph break where none is allowed (``nopython=True`` or ``fullgraph=True``).

    Attributes:
        reason_id: key of ``framegraft.reasons.REASONS``.
        detail: what exactly was met, in a few words.
        why, hint: the reason in words, and what the user may do about it.
        user_stack: ``(file, line, function)`` entries of the traced program, outermost first.
    """

    def __init__(
        self,
        reason_id: str,
        detail: str = "",
        *,
        why: str | None = None,
        hint: str | None = None,
        user_stack: Iterable[StackEntry] = (),
    ) -> None:
        known = look_up_reason(reason_id)
        self.reason_id = reason_id
        self.detail = detail
        self.why = known.why if why is None else why
        self.hint = known.hint if hint is None else hint
        self.user_stack: list[StackEntry] = list(user_stack)
        super().__init__(reason_id, detail)

    @classmethod
    def from_break(cls, broken: GraphBreak) -> Unsupported:
        """The error that tells a user of the break ``broken``."""
        return cls(broken.reason, broken.detail, user_stack=broken.user_stack)

    def __reduce__(self) -> Any:
        return _rebuild_unsupported, (self.reason_id, self.detail, self.why, self.hint, self.user_stack)

    def __str__(self) -> str:
        return describe_break(self.reason_id, self.detail, self.user_stack, why=self.why, hint=self.hint)


def _rebuild_unsupported(reason_id: str, detail: str, why: str, hint: str, user_stack: list[StackEntry]) -> Unsupported:
    return Unsupported(reason_id, detail, why=why, hint=hint, user_stack=user_stack)


class GraphBreak(Exception):
    """Control flow: the trace cannot go on at the current instruction.

    ``reason`` is an id of ``reasons.REASONS``; ``user_stack`` is filled in by whoever knows the traced frames.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
        self.user_stack: Sequence[StackEntry] = []
        self.frames: list[Any] = []  # the traced frames that it interrupts, outermost first
        self.at = 0  # the step of the trace before which it is to end, where that is not the current one

    def settle(self) -> None:
        """Let go of the frames, which hold the objects of the program."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        self.frames = []

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


class NotYet(GraphBreak):
    """An object that this very call makes into another one: the frame as a whole runs in eager mode, and is captured in the next call."""


class Covered(GraphBreak):
    """An operation that may raise stands inside of a block, and cannot run twice."""


class UserRaise(Exception):
    """Control flow: the traced program raises ``value`` (a tracker of an exception, or of its class)."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


class Restart(Exception):
    """Control flow: trace the frame again from its start, with what was learnt kept by the converter."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


def format_stack(user_stack: Sequence[StackEntry], indent: str = "  ") -> str:
    """The stack as a traceback prints it, outermost first, with the line of source where it can be found, and a caret."""
    lines = []
    for entry in user_stack:
        filename, line, function = entry
        lines.append(f'{indent}File "{filename}", line {line}, in {function}')
        lines += [f"{indent}  {text}" for text in source_line(entry)]
    return "\n".join(lines)


def source_line(entry: StackEntry) -> list[str]:
    """The line of source without its indentation, and one with carets under what is meant; empty if there is no source."""
    filename, line, _ = entry
    raw = linecache.getline(filename, line).rstrip("\n")
    source = raw.strip()
    if not source:
        return []
    columns = getattr(entry, "columns", None)
    if columns is None:
        return [source]
    last, start, end = columns
    encoded = raw.encode()
    first = len(encoded[:start].decode(errors="replace"))
    after = len(encoded[:end].decode(errors="replace")) if last == line else len(raw.rstrip())
    shift = len(raw) - len(raw.lstrip())
    if first < shift or after <= first or (first == shift and after == len(raw.rstrip())):
        return [source]  # all of the line, or columns of another version of the file
    return [source, " " * (first - shift) + "^" * (after - first)]


def describe_break(
    reason_id: str,
    detail: str = "",
    user_stack: Sequence[StackEntry] = (),
    *,
    why: str | None = None,
    hint: str | None = None,
) -> str:
    """A break in the words that logs, ``explain`` and ``Unsupported`` share: what, why, where, and what to do."""
    known = look_up_reason(reason_id)
    lines = [f"{reason_id}: {detail}" if detail else reason_id]
    lines.append(f"  Why: {known.why if why is None else why}")
    if user_stack:
        lines.append("  Where (most recent call last):")
        lines.append(format_stack(user_stack, indent="    "))
    lines.append(f"  Hint: {known.hint if hint is None else hint}")
    return "\n".join(lines)
