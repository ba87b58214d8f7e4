"""Notes of exceptions (``add_note``), and ``with_traceback`` called on one that the program has just made."""

import sys

import pytest

from .differential import differential

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes")


@differential(graphs=1)
def test_notes_of_exceptions_made_and_met(x):
    seen = []
    try:
        error = ValueError(1)
        error.add_note("first")
        error.add_note("second")
        raise error
    except ValueError as error:
        seen.append(error.__notes__)
    try:
        {}["a"]
    except KeyError as error:
        error.add_note("of a key")
        seen.append((error.__notes__, hasattr(error, "__notes__")))
    return x + 1, seen


@differential()
def test_notes_of_what_leaves(x):
    try:
        {}["a"]
    except KeyError as error:
        error.add_note("on its way")
        raise


class Plain(ValueError):
    def __setattr__(self, name, value):
        super().__setattr__(name, value)


@differential()
def test_notes_that_are_none(x):
    seen = []
    for notes, note in (([], 3), ("text", "a"), (["b"], "c")):
        error = Plain()
        error.__notes__ = notes
        try:
            error.add_note(note)
        except TypeError as refused:
            seen.append(str(refused))
        seen.append(error.__notes__)
    return x, seen


@differential(graphs=1)
def test_tracebacks_given_where_it_is_raised(x):
    try:
        try:
            raise KeyError("a")
        except KeyError as error:
            raise ValueError(1).with_traceback(error.__traceback__) from None
    except ValueError as error:
        return x + 1, error.args, error.with_traceback(None) is error


@differential()
def test_wrong_numbers_of_arguments(x):
    seen = []
    for call in (lambda e: e.add_note("a", 0), lambda e: e.add_note(), lambda e: e.with_traceback(), lambda e: e.with_traceback(None, 1)):
        try:
            call(KeyError("k"))
        except TypeError as error:
            seen.append(type(error))
    return x, seen
