"""warnings.warn in captured code: the same warnings, of the same lines, once or always as the filters and registries say."""

import contextlib
import io
import warnings

import pytest
import torch
from torch import nn
from typing_extensions import deprecated

import framegraft

pytestmark = pytest.mark.own_code  # lines in decompiled code are its own


def inner(x):
    warnings.warn("inner", DeprecationWarning, stacklevel=2)
    return x * 2


@deprecated("old")
def old(x):
    return x + 1


class Layer(nn.Module):
    def forward(self, x):
        warnings.warn("own", stacklevel=1)
        warnings.warn("of the module's call", stacklevel=3)
        return old(x)


LAYERS = nn.Sequential(Layer(), nn.Linear(3, 3), Layer())


@torch.no_grad()
def decorated(x):
    warnings.warn("decorated", FutureWarning, stacklevel=3)
    return x


def items(x):
    yield x
    warnings.warn("behind", stacklevel=2)


class Told:
    @property
    def value(self):
        warnings.warn("property", stacklevel=2)
        return 3

    def __enter__(self):
        warnings.warn("entered", stacklevel=2)

    def __exit__(self, *args):
        warnings.warn("left", stacklevel=2)


def plain(x):
    warnings.warn("first")
    for i in range(2):
        warnings.warn(f"number {i}", stacklevel=1)
    return inner(x) + [inner(y) for y in (x, x)][0] + next(map(inner, [x]))


def layers(x):
    return LAYERS(x) + decorated(x) + sum(items(x))


def special(x):
    told = Told()
    with told:
        x = x * told.value
    return x


def heard(fn, action, calls=2):
    namespace = globals()
    namespace.pop("__warningregistry__", None)
    nn.modules.module.__dict__.pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        results = [fn(torch.ones(2, 3)) for _ in range(calls)]
    return results, [(str(w.message), w.category, w.filename, w.lineno) for w in caught]


@pytest.mark.parametrize("action", ["always", "default", "once", "module", "ignore"])
@pytest.mark.parametrize("fn", [plain, layers, special])
def test_warnings(fn, action):
    wanted, expected = heard(fn, action)
    framegraft.reset()
    results, told = heard(framegraft.compile(fn, backend="eager", fullgraph=True), action)
    assert told == expected and (told or action == "ignore")
    assert all(torch.equal(r, w) for r, w in zip(results, wanted, strict=True))


def noted(x, notes):
    notes.append("before")
    inner(x)
    notes.append("behind")
    return x + 1


def test_errors():
    compiled = framegraft.compile(noted, backend="eager")
    with warnings.catch_warnings():
        for action, expected in (("ignore", ["before", "behind"]), ("error", ["before"]), ("ignore", ["before", "behind"])):
            warnings.simplefilter(action)
            notes = []
            try:
                compiled(torch.ones(2), notes)
            except DeprecationWarning as error:
                assert str(error) == "inner" and action == "error"
            assert notes == expected


def test_the_first_filter_that_matches_decides():
    compiled = framegraft.compile(noted, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        for module, action, expected in ((None, "ignore", True), ("elsewhere", "ignore", False), (None, "error", False), (None, "always", True)):
            with warnings.catch_warnings(record=True):
                warnings.filterwarnings(action, category=DeprecationWarning, module=module or "")
                for fn in (noted, compiled):
                    notes = []
                    with contextlib.nullcontext() if expected else pytest.raises(DeprecationWarning, match="inner"):
                        fn(torch.ones(2), notes)
                    assert notes == (["before", "behind"] if expected else ["before"])
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("error", DeprecationWarning)
        warnings.simplefilter("always", DeprecationWarning)
        framegraft.compile(noted, backend="eager", fullgraph=True)(torch.ones(2), [])


def test_shown_by_the_program(monkeypatch):
    def f(x, notes):
        notes.append("before")
        warnings.warn("told")
        notes.append("behind")
        return x + 1

    notes = []
    compiled = framegraft.compile(f, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for _ in range(2):
            warnings.showwarning = lambda *args, **kwargs: notes.append("shown")
            notes.clear()
            compiled(torch.ones(2), notes)
            assert notes == ["before", "shown", "behind"]


def test_before_the_function_fails():
    def f(x):
        warnings.warn("told")
        y = x[torch.tensor([5])]
        raise ValueError(y)

    with warnings.catch_warnings(record=True) as caught, pytest.raises(IndexError):
        warnings.simplefilter("always")
        framegraft.compile(f, backend="eager")(torch.ones(2))
    assert [str(w.message) for w in caught] == ["told"]


def recorded(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("told")
        x = x + len(caught)
        found = [str(w.message) for w in caught]
    return x, found


def recorded_of_torch(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = x + torch.range(0, 3).sum()  # which warns
        return x, len(caught)


def shown_to_itself(x):
    shown, shows = [], warnings.showwarning
    warnings.showwarning = lambda *args, **kwargs: shown.append(str(args[0]))
    warnings.warn("told")
    warnings.showwarning = shows
    return x + 1, shown


def shown_by_a_later_change(x):
    shown, shows = [], warnings.showwarning
    warnings.warn("told")
    warnings.showwarning = lambda *args, **kwargs: shown.append(str(args[0]))
    x = x + 1
    warnings.showwarning = shows
    return x, shown


def written_elsewhere(x):
    text = io.StringIO()
    with contextlib.redirect_stderr(text):
        warnings.warn("told")
    return x + 1, text.getvalue()


@pytest.mark.parametrize("fn", [recorded, recorded_of_torch, shown_to_itself, shown_by_a_later_change, written_elsewhere])
def test_what_the_program_sees_of_its_own_warnings(fn):
    def calls(f):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings._showwarnmsg_impl = IMPL
            with contextlib.redirect_stderr(io.StringIO()) as text:
                return str([f(torch.ones(2)) for _ in range(2)]), text.getvalue(), len(caught)

    assert calls(framegraft.compile(fn, backend="eager")) == calls(fn)


IMPL = warnings._showwarnmsg_impl


def test_a_list_that_records_warnings_later():
    def f(x, caught):
        warnings.warn("told")
        return x + len(caught)

    compiled = framegraft.compile(f, backend="eager")
    for fn in (compiled, f):
        results = [fn(torch.zeros(1), [])]
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                results.append(fn(torch.zeros(1), caught))
        assert [int(r) for r in results] == [0, 1, 1]
