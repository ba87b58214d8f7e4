"""A few models of plain torch, changed again and again between two calls; ``python -m tests.models.mutate`` does more."""

import pytest

from .mutate import review
from .test_plain_torch import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_changes_between_calls(name):
    make, inputs = MODELS[name]
    wrong = [found for seed in range(2) if (found := review(make, inputs, seed, steps=8)) is not None]
    assert not wrong, "\n".join(wrong)
