"""The interpreter's own words for errors that it raises itself: they differ from one CPython to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _unbound_local() -> Any:
    name  # noqa: B018, F821  # type: ignore
    name = None  # noqa: F841


def _unbound_free() -> Any:
    def inner() -> Any:
        return name  # noqa: F821

    inner()
    name = None  # noqa: F841
    return name


class _Manager:
    """No context manager; with ``__enter__``, half of one."""


class _Half(_Manager):
    def __enter__(self) -> None:
        pass


def _enter(manager: Any) -> Any:
    def run() -> None:
        with manager:
            pass

    return run


def _words(run: Callable[[], Any], name: str) -> tuple[type[Exception], str]:
    """(class, text with ``{}`` in place of the name) of the error that ``run`` raises."""
    try:
        run()
    except Exception as error:
        return type(error), str(error).replace(name, "{}")
    raise AssertionError(f"{run} raises nothing")


_LOCAL, _FREE = _words(_unbound_local, "name"), _words(_unbound_free, "name")
_NO_ENTER, _NO_EXIT = _words(_enter(_Manager()), "_Manager"), _words(_enter(_Half()), "_Half")


def unbound_error(name: str, free: bool = False) -> Exception:
    """What the interpreter raises for a variable without a value (CPython: format_exc_check_arg, format_exc_unbound)."""
    cls, text = _FREE if free else _LOCAL
    error = cls(text.format(name))
    if free:
        error.name = name  # type: ignore[attr-defined]
    return error


def no_manager(name: str, has_enter: bool) -> tuple[type[Exception], str]:
    """(class, text) of what ``with`` raises for an object of the class ``name`` without ``__enter__``, or with no ``__exit__``."""
    error, text = _NO_EXIT if has_enter else _NO_ENTER
    return error, text.format(name)
