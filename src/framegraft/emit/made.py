"""What transformed code calls to make objects that the trace made: exceptions, iterators, functions, generators."""

from __future__ import annotations

import collections
import itertools
import random
import sys
import types
from typing import Any

import torch

from .. import _native
from ..model.value import MISSING
from ..semantics.lookup import container_type
from .tracebacks import Function


def new_exception(cls: type[BaseException], args: tuple, attrs: dict, cause: Any, context: Any, trace: tuple) -> BaseException:
    """Called by transformed code: an exception that the trace made.

    context: MISSING for what the calling frame's callers handle.
    trace: where it was raised and what it passed, innermost first: (code, line); None is the calling frame's code.
    """
    made = cls.__new__(cls, *args)
    for base in cls.__mro__:
        init = base.__dict__.get("__init__")
        if isinstance(init, types.WrapperDescriptorType):  # the one written in C: StopIteration's keeps ``value``
            init(made, *args)
            break
    complete_exception(made, attrs, cause, sys.exc_info()[1] if context is MISSING and trace else context)
    if trace:  # the interpreter relies on a caught exception having a traceback
        BaseException.__setattr__(made, "__traceback__", _links(trace, sys._getframe(1)))
    return made


def new_traceback(trace: tuple) -> types.TracebackType | None:
    """Called by transformed code: one that an exception had before it got another; ``trace`` as in ``new_exception``."""
    return _links(trace, sys._getframe(1))


def _links(trace: tuple, here: types.FrameType) -> types.TracebackType | None:
    made = None
    for code, line in trace:
        made = types.TracebackType(made, here if code is None else Function.of(code).frame(line), -1, line)
    return made


def new_random(state: tuple) -> random.Random:
    """Called by transformed code: a generator of random numbers that is in this state."""
    made = random.Random(0)
    made.setstate(state)
    return made


def advanced(iterator: Any, given: int) -> Any:
    """Called by transformed code: an iterator of itertools that has given so many items."""
    collections.deque(itertools.islice(iterator, given), 0)
    return iterator


def new_inference_mode(mode: bool | None) -> Any:
    """Called by transformed code: an object that has been left again, as it was made for ``mode``; for None, one without an
    ``__init__`` yet, which is what enters it.
    """
    cls: Any = torch._C._InferenceMode
    made = cls.__new__(cls)
    if mode is not None:
        made.__init__(mode)
        made.__exit__(None, None, None)
    return made


def complete_exception(made: BaseException, attrs: dict, cause: Any, context: Any) -> None:
    """What an exception refers to; called by transformed code where that leads back to the exception."""
    cls = type(made)
    for name, value in attrs.items():
        if isinstance(getattr(cls, name, None), types.MemberDescriptorType):
            BaseException.__setattr__(made, name, value)
        else:
            _native.namespace_of(made)[name] = value
    if cause is not MISSING:
        BaseException.__setattr__(made, "__cause__", cause)
    if context is not MISSING:
        BaseException.__setattr__(made, "__context__", context)


def new_iterator(items: Any, index: int) -> Any:
    """Called by transformed code: an iterator over a list or tuple that stands at ``index``."""
    return _standing_at(container_type(items).__iter__(items), items, index, index)


def new_reversed(items: Any, index: int) -> Any:
    """Called by transformed code: reversed(items) that gives the item at ``index`` next, none where that is -1."""
    made = list.__reversed__(items) if isinstance(items, list) else reversed(tuple(items))
    return _standing_at(made, items, index, index + 1)


def _standing_at(made: Any, items: Any, index: int, size: int) -> Any:
    """``made``, an iterator over ``items``, at ``index``; the list has, or will have when it is changed after this, ``size`` items."""
    missing = size - container_type(items).__len__(items)
    if missing > 0:  # __setstate__ would stop at the list's end
        list.extend(items, [None] * missing)
    made.__setstate__(index)
    if missing > 0:
        list.__delitem__(items, slice(-missing, None))
    return made


def new_dict_iterator(mapping: Any, index: int, view: str, backwards: bool) -> Any:
    """Called by transformed code: an iterator over a dict, a view of it, a set or a deque that has given ``index`` items."""
    base = container_type(mapping)
    if view:
        viewed = getattr(base, view)(mapping)
        made = reversed(viewed) if backwards else iter(viewed)
    else:
        made = base.__reversed__(mapping) if backwards else base.__iter__(mapping)
    for _ in range(index):
        next(made)
    return made


def new_function(code: Any, scope: dict, name: str, qualname: str, defaults: Any, kwdefaults: Any, closure: Any, attrs: dict,
                 annotations: Any) -> Any:
    """Called by transformed code: a function that the trace made."""
    made = types.FunctionType(code, scope, name, defaults, closure)
    made.__qualname__ = qualname
    made.__kwdefaults__ = kwdefaults
    if annotations is not None:
        made.__annotations__ = annotations if isinstance(annotations, dict) else dict(
            zip(annotations[::2], annotations[1::2], strict=True))
    made.__dict__.update(attrs)
    return made


def new_generator(code: Any, scope: dict, args: tuple, started: bool, finished: bool, delegate: int, name: str,
                  qualname: str) -> Any:
    """Called by transformed code: a generator that the trace made, where it stood. ``args``: the cells of free variables last.

    delegate: which argument is the iterator that it waits for; -1: none.
    """
    count = len(args) - len(code.co_freevars)
    if delegate >= 0:
        args = (*args[:delegate], _native.Delegate(args[delegate]), *args[delegate + 1 :])
    made = types.FunctionType(code, scope, None, None, args[count:])(*args[:count])
    made.__name__, made.__qualname__ = name, qualname
    if finished:
        made.close()
    elif started:
        next(made)  # to the yield of its prologue
    return made


class Asked:
    """Stands for an iterator whose ``__iter__`` has run: ``iter()`` of this gives it without asking again."""

    __slots__ = ("iterator",)

    def __init__(self, iterator: Any) -> None:
        self.iterator = iterator

    def __iter__(self) -> Any:
        return self.iterator
