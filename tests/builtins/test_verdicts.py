"""A sample of the builtin cases in each run; all of them with FRAMEGRAFT_FULL=1 (or ``python -m tests.builtins``)."""

import itertools
import os

import pytest

from .cases import MODULES, SAMPLES, function_cases, method_cases, operator_cases, some
from .check import difference

SHARE = 1.0 if os.environ.get("FRAMEGRAFT_FULL") == "1" else 0.004


def check(cases):
    wrong = []
    for case in cases:
        for inside in (False, True):
            found, _ = difference(case, inside)
            if found is not None:
                wrong.append(f"{'inside ' if inside else 'outside'} {case}\n    {found}")
    assert not wrong, "\n".join(wrong)


def test_methods():
    check(some(itertools.chain(*map(method_cases, SAMPLES)), SHARE))


@pytest.mark.parametrize("module", MODULES)
def test_functions(module):
    check(some(function_cases(module), 4 * SHARE))


def test_operators():
    check(some(operator_cases(), SHARE))
