"""The places where upper layers plug in: tables from Python callables to their meaning on trackers."""

from __future__ import annotations

from typing import Any

HANDLERS: dict[int, Any] = {}  # id(callable) -> handler(tx, args, kwargs)
_ALIVE: list = []
METHODS: dict[tuple[type, str], Any] = {}  # (tracker class, method) -> handler(tx, obj, args, kwargs)
CLASSES: dict[type, Any] = {}  # class -> handler(tx, cls, args, kwargs), for calls of the class


class TensorLayer:
    """Filled by ``tensor.torchops``: the interpreter below knows no torch."""

    takes: Any = lambda self, fn, args, kwargs: False
    call: Any = None
    get_attr: Any = None
    set_attr: Any = None
    call_method: Any = None
    truth: Any = None
    wrap: Any = None
    is_constant_type: Any = lambda self, cls: False


TENSOR = TensorLayer()


def handles(*functions: Any) -> Any:
    """Register the decorated handler(tx, args, kwargs) for each of ``functions``."""

    def register(handler: Any) -> Any:
        for fn in functions:
            HANDLERS[id(fn)] = handler
            _ALIVE.append(fn)
        return handler

    return register


def method(cls: type, *names: str) -> Any:
    def register(handler: Any) -> Any:
        for name in names:
            METHODS[cls, name] = handler
        return handler

    return register


def constructs(*classes: type) -> Any:
    def register(handler: Any) -> Any:
        for cls in classes:
            CLASSES[cls] = handler
        return handler

    return register
