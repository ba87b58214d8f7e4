"""Regions of torch.utils.checkpoint that eager mode runs a second time, in the backward pass: what the second run changes or draws."""

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

from .differential import differential


def leaf():
    return torch.arange(1.0, 5.0, requires_grad=True)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.register_buffer("sums", torch.zeros(4))

    def forward(self, x):
        self.count += 1
        return (x * x).sin()


class Summing(Counting):
    def forward(self, x):
        self.sums += 1
        return (x * x).sin()


class Keeping(Counting):
    def forward(self, x):
        self.sums = self.sums + x.detach()
        return (x * x).sin()


@differential(lambda: (nn.BatchNorm1d(4), torch.arange(8.0).view(2, 4).requires_grad_()), graphs=0)
def test_statistics_of_a_batch_norm(norm, x):
    return checkpoint(norm, x, use_reentrant=False)


@differential(lambda: (nn.BatchNorm1d(4), torch.arange(8.0).view(2, 4).requires_grad_()), graphs=1)
def test_statistics_where_nothing_runs_anew(norm, x):
    with torch.no_grad():
        y = checkpoint(norm, x, use_reentrant=False)
    norm.eval()
    return y, checkpoint(norm, x, use_reentrant=False)


@differential(lambda: (Counting(), leaf()))
def test_attribute_counted_up(module, x):
    return checkpoint(module, x, use_reentrant=False)


@differential(lambda: (Summing(), leaf()))
def test_buffer_changed_in_place(module, x):
    return checkpoint(module, x, use_reentrant=False)


@differential(lambda: (Keeping(), leaf()))
def test_buffer_set_anew(module, x):
    return checkpoint(module, x, use_reentrant=False)


@differential(lambda: (leaf(), []))
def test_list_from_outside(x, told):
    def body(t):
        told.append(len(told))
        return t.sin().cos()

    return checkpoint(body, x, use_reentrant=False)


@differential(lambda: (leaf(),))
def test_list_of_the_frame(x):
    told = []

    def body(t):
        told.append(len(told))
        return t.sin().cos()

    return checkpoint(body, x, use_reentrant=False), told


@differential(lambda: (leaf(), torch.ones(4)))
def test_data_changed(x, other):
    def body(t):
        other.data.add_(1)
        return t.sin().cos()

    return checkpoint(body, x, use_reentrant=False)


@differential(lambda: (leaf(), iter([2, 3, 4])))
def test_iterator_from_outside(x, numbers):
    return checkpoint(lambda t: (t * next(numbers)).sin(), x, use_reentrant=False)


@differential(lambda: (leaf(),))
def test_other_random_numbers(x):
    return checkpoint(lambda t: torch.dropout(t.sin(), 0.5, True).sin(), x, use_reentrant=False, preserve_rng_state=False)


@differential(lambda: (leaf(),), graphs=1)
def test_same_random_numbers(x):
    return checkpoint(lambda t: torch.dropout(t.sin(), 0.5, True).sin(), x, use_reentrant=False)


@differential(lambda: (leaf(),))
def test_variable_of_a_loop(x):
    """The second runs take place behind the loop, and all see its last item."""
    for factor in (2, 3):
        x = checkpoint(lambda t: (t * factor).sin(), x, use_reentrant=False)  # noqa: B023
    return x


@differential(lambda: (leaf(),), graphs=1)
def test_variables_of_each_pass(x):
    def scaled(factor):
        return lambda t: (t * factor).sin()

    for factor in (2, 3):
        x = checkpoint(scaled(factor), x, use_reentrant=False)
    return x


@differential(lambda: (leaf(),), graphs=1)
def test_changes_of_what_the_region_makes(x):
    def body(t):
        parts = []
        parts.append(t * 2)
        y = nn.ReLU()(parts[0]).sin()
        y.add_(1)
        return (y * t).cos()

    return checkpoint(body, x, use_reentrant=False)
