"""A fixed part of what `python -m tests.torchdb` runs whole. Set FRAMEGRAFT_TORCHDB=n for the n-th of 40 other parts."""

import os
import random

import pytest

pytest.importorskip("expecttest")  # torch's testing package needs it

from . import modules, operators, optimizers
from .check import check

PART = random.Random(os.environ.get("FRAMEGRAFT_TORCHDB", "0"))
OPERATORS = {name: sorted(operators.names(name)) for name in operators.DATABASES}
CHOSEN = [("op_db", name) for name in PART.sample(OPERATORS["op_db"], 12)]
CHOSEN += [(database, PART.choice(OPERATORS[database])) for database in operators.DATABASES if database != "op_db"]


# torch's code for these asks torch.compiler.is_compiling(), and then keeps in tensors of single precision what it else
# computes with Python's numbers: results differ in the last bits, behind torch.compile as well. See docs/status.md.
ROUNDED = {"NAdam", "ASGD", "Adagrad", "Adamax", "LBFGS"}


def verify(cases):
    verdicts = [check(case) for case in operators.pick(list(cases), 10, "")]
    wrong = [f"{v.name}: {v.kind}\n{v.detail}" for v in verdicts if v.kind not in ("same", "broken input")]
    assert not wrong, "\n".join(wrong)
    assert verdicts


@pytest.mark.parametrize("database, name", CHOSEN, ids=lambda value: value)
def test_operators(database, name):
    verify(operators.cases(database, {name}, count=1))


@pytest.mark.parametrize("name", PART.sample(sorted(modules.names()), 4))
def test_modules(name):
    verify(modules.cases({name}, count=1))


@pytest.mark.parametrize("name", PART.sample(sorted(set(optimizers.names()) - ROUNDED), 2))
def test_optimizers(name):
    verify(optimizers.cases({name}, count=2))
