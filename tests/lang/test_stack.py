"""Who walks the stack behind a break sees each frame of the program once: ``sys._getframe``, ``f_back``, levels of warnings."""

import inspect
import logging
import sys
import warnings

import pytest
import torch

import framegraft
from framegraft.bytecode.versions import VERSION

from .differential import differential

pytestmark = pytest.mark.skipif(not VERSION.hides, reason="CPython 3.10 shows every frame")
FILE = __file__


def frames():
    """(function, line) of the program's frames, from the caller on."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == FILE:
            found.append((frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return found


def pause():
    print(end="")


class Handler(logging.Handler):
    def __init__(self):
        super().__init__()
        self.found = []

    def emit(self, record):
        self.found.append((record.funcName, record.lineno, record.getMessage()))


@differential()
def test_frames_are_counted_once(x):
    found = [frames()]
    for index in range(2):
        x = x + index
        pause()
        found.append(frames())
    found.append([sys._getframe(0).f_code.co_name, sys._getframe(0).f_lineno])
    return x, found


@pytest.mark.own_code  # lines in decompiled code are its own
@differential()
def test_frames_in_handlers(x):
    found = []
    try:
        pause()
        found.append(frames())
        raise ValueError(1)
    except ValueError as error:
        pause()
        found.append(frames())
        found.append(error.__traceback__.tb_lineno)
    finally:
        pause()
        found.append(frames())
    with warnings.catch_warnings():
        pause()
        found.append(frames())
    return x, found


@pytest.mark.own_code  # lines in decompiled code are its own
@differential()
def test_levels_of_warnings(x):
    def warn(text):
        warnings.warn(text, stacklevel=2)
        pause()
        warnings.warn(text + "!", UserWarning, 2)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pause()
        warnings.warn("own", stacklevel=1)
        warn("first")
        x = x + 1
        pause()
        warn("second")
    return x, [(str(w.message), w.category, w.filename, w.lineno) for w in caught]


@pytest.mark.own_code  # lines in decompiled code are its own
@differential()
def test_levels_of_logging(x):
    handler = Handler()
    log = logging.Logger("framegraft.tests.stack")
    log.addHandler(handler)
    pause()
    log.warning("own %d", 1)
    x = x * 2
    pause()
    log.error("own %s", "again")
    return x, handler.found


@differential()
def test_inspect_sees_the_callers(x):
    pause()
    stack = [(f.function, f.lineno) for f in inspect.stack() if f.filename == FILE]
    x = x + 1
    pause()
    here = inspect.currentframe()
    return x, stack, here.f_code.co_name, here.f_lineno


@differential(lambda: (torch.ones(2), 3))
def test_recursion_is_as_deep_as_it_is(x, n):
    def depth(n):
        if not n:
            return [name for name, _ in frames()]
        return depth(n - 1)

    pause()
    first = depth(0)
    pause()
    return x, first


class Looking:
    def __init__(self):
        self.found = []

    def look(self):
        self.found.append([name for name, _ in frames()])

    def __enter__(self):
        self.look()

    def __exit__(self, *error):
        self.look()
        return True

    def __iter__(self):
        self.look()
        return self

    def __next__(self):
        self.look()
        raise StopIteration


@differential()
def test_methods_called_by_statements_see_the_callers(x):
    looking = Looking()
    with looking:
        x = x + 1
        pause()
        raise ValueError
    for _ in looking:
        x = x + 2
    return x, looking.found


@differential(lambda: (torch.ones(2), 2))
def test_the_rest_of_a_frame_given_on(x, n):
    """Calls in front of the last one are seen, whichever is the last one."""

    def looks(value):
        pause()
        return [name for name, _ in frames()], value

    try:
        found = looks(looks(n)[1] if n > 1 else 0)
        return x, found, looks(x)
    finally:
        pause()


def asks_for_its_caller(x):
    pause()
    x = x + 1
    warnings.warn("behind a break", stacklevel=2)
    pause()
    warnings.warn("behind two", stacklevel=2)
    return x, sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno


def calls(fn):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fn(torch.ones(2))
    return result[1:], [(str(w.message), w.filename, w.lineno) for w in caught]


def test_the_caller_of_a_captured_function():
    expected = calls(asks_for_its_caller)
    captured = framegraft.compile(asks_for_its_caller, backend="eager")
    assert [calls(captured), calls(captured)] == [expected] * 2
