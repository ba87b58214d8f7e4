"""Operations of torch that warn do so as often as in eager mode: when they run, not when they are captured."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
import torch

import framegraft


def reversed_dimensions(x):
    return (x + 1).T * 2


def resized_output(x):
    y = x * 2
    torch.add(y, y, out=torch.empty(1))
    return y


def heard(fn, action="always"):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        fn(torch.ones(2, 3, 4))
    return [(w.category, str(w.message).split(" (Triggered")[0]) for w in told]


@pytest.fixture
def warning_always():
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


@pytest.mark.parametrize("fn", [reversed_dimensions, resized_output])
def test_as_often_as_in_eager_mode(fn, warning_always):
    want = heard(fn)
    assert want
    compiled = framegraft.optimize("eager")(fn)
    assert [heard(compiled), heard(compiled)] == [want, want]


def test_capture_does_not_use_up_what_is_told_once():
    code = """if True:
        import warnings, torch, framegraft
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            framegraft.optimize("eager")(lambda x: (x + 1).T * 2)(torch.ones(2, 3, 4))
        assert len(told) == 1 and "x.T" in str(told[0].message), told
        assert "framegraft" not in told[0].filename, told
        assert not torch.is_warn_always_enabled() and len(set(warnings.filters)) == len(warnings.filters)"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("fn", [reversed_dimensions, resized_output])
def test_warnings_that_are_errors(fn, warning_always):
    with pytest.raises(UserWarning):
        heard(fn, "error")
    compiled = framegraft.optimize("eager")(fn)
    for _ in range(2):
        with pytest.raises(UserWarning):
            heard(compiled, "error")
