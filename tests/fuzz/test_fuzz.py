"""A fixed, small budget of random programs; ``python -m tests.fuzz`` runs thousands."""

import pytest

from .execute import examine
from .wide import WIDE, generate

SEEDS = [*range(0, 100), *range(WIDE, WIDE + 60)]


@pytest.mark.parametrize("first", SEEDS[::20])
def test_programs(first, request):
    wrong = []
    for seed in range(first, first + 20):
        try:
            text = generate(seed)
            compile(text, "<generated>", "exec")
        except (SyntaxError, AttributeError):  # the generator's own slips
            continue
        found = examine(text, seed, decompiled=request.config.getoption("--decompiled"))
        if found is not None:
            wrong.append(f"seed {seed}: {found}")
    assert not wrong, "\n".join(wrong)
