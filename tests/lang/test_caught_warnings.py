"""``with warnings.catch_warnings()`` inside of captured functions: what is told, where the filters are, and in how many graphs."""

import sys
import warnings

import numpy as np
import pytest
import sympy  # noqa: F401 - which adds a filter where it is imported for the first time
import torch

import framegraft


def ignored(x):
    y = x + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("inside")
        y = y * 2
    warnings.warn("behind")
    return y


def nested(x):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("first")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="sec")
            warnings.warn("second")
            warnings.warn("third", FutureWarning)
            x = x * 2
        warnings.warn("second")
    return x + 1


def of_a_class(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.warn("heard")
        warnings.warn("not heard", FutureWarning)
        warnings.resetwarnings()
        warnings.warn("heard again", FutureWarning)
        warnings.simplefilter("ignore", append=True)
        warnings.warn("not heard", DeprecationWarning)
        return x * 3


def _helper(x, n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.warn("helper")
        return x * n


def in_callees(x):
    for n in range(3):
        x = _helper(x, n + 1)
        warnings.warn(f"number {n}")
    return x


def left_by_an_exception(x):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = x + 1
            raise ValueError("ours")
    except ValueError:
        warnings.warn("behind")
    return x * 2


def told_again(x):
    for _ in range(3):
        _tell()
        with warnings.catch_warnings():
            x = x + 1
    return x


def told_once(x):
    for _ in range(3):
        _tell()
        x = x + 1
    return x


def _tell():
    warnings.warn("of one line")


def of_an_operation(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x.reshape(1, 2, -1).T * 2
    return y + x.reshape(2, 1, -1).T


def broken(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x + 1
        framegraft.graph_break()
        warnings.warn("inside")
        y = y * 2
    warnings.warn("behind")
    return y + 1


def recorded(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn("inside")
        y = x * 2
    return y + len(found)


def recorded_none(x):
    warnings.warn("before")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = x * 2
        assert not found
    found.append(1)
    return y + len(found), found


def recorded_of_an_operation(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        y = x.reshape(1, 2, -1).T * 2
    return y + len(found)


def of_an_array(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = np.log(x.numpy() - 1)
    return y


def recorded_of_an_array(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        y = np.log(x.numpy() - 1)
    return y, [str(w.message) for w in found]


def looked_at(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x + len(warnings.filters) - len(warnings.filters[1:])


def errors(x):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x = x + 1
            warnings.warn("raised")
    except UserWarning as error:
        return x * 2, str(error)


def chosen(x):
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        warnings.warn("inside")
        warnings.warn("heard", FutureWarning)
        return x + 1


ONE_GRAPH = [ignored, nested, of_a_class, in_callees, left_by_an_exception, told_again, told_once, recorded_none]
ONE_GRAPH += [chosen] if sys.version_info >= (3, 11) else []


def heard(fn, action):
    results, filters = [], warnings.filters
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        before = list(warnings.filters)
        for _ in range(3):
            results.append(fn(torch.ones(2, 3)))
            results.append(len(told))
        assert warnings.filters == before
    assert warnings.filters is filters
    return results, [_words(w) for w in told]


def _words(told):
    """With the place, but for those of torch's operations: that is in the graph."""
    text = str(told.message).split(" (Triggered")[0]
    return (told.category, text) if text.startswith("The use of") else (told.category, text, told.filename, told.lineno)


@pytest.fixture(autouse=True)
def warning_always():
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


@pytest.mark.parametrize("action", ["always", "default", "ignore", "once"])
@pytest.mark.parametrize("fn", [*ONE_GRAPH, of_an_operation, broken, recorded, recorded_of_an_operation, of_an_array, recorded_of_an_array, looked_at, errors])
def test_as_in_eager_mode(fn, action):
    counter = framegraft.testing.CompileCounter()
    globals().get("__warningregistry__", {}).clear()
    want = heard(fn, action)
    globals().get("__warningregistry__", {}).clear()
    got = heard(framegraft.compile(fn, backend=counter), action)
    assert got[1] == want[1]
    assert str(got[0]) == str(want[0])
    if fn in ONE_GRAPH:
        assert counter.frame_count == 1, [str(r) for r in framegraft.break_reasons()]


def test_a_filter_that_comes_later():
    compiled = framegraft.compile(ignored, backend="eager", fullgraph=True)
    compiled(torch.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="behind"):
            ignored(torch.ones(2))
        framegraft.reset()
        compiled = framegraft.compile(ignored, backend="eager")
        with pytest.raises(UserWarning, match="behind"):
            compiled(torch.ones(2))


@pytest.mark.parametrize("fn", [warnings.filterwarnings, warnings.simplefilter])
def test_a_module_that_is_none_is_refused_as_in_eager_mode(fn):
    def f(x):
        with warnings.catch_warnings():
            fn("ignore", module=None)
            return x + 1

    for call in (f, framegraft.compile(f, backend="eager")):
        with pytest.raises((AssertionError, TypeError), match="module"):
            call(torch.ones(2))
