"""Training programs as people write them, captured and not: losses, parameters, gradients and random numbers after a few steps."""

import random

import pytest
import torch

import framegraft

from .programs import PROGRAMS

QUICK = ("wgan_gp", "moe_dense", "ema_weights", "hessian_vector", "ctc")  # of those behind AOTAutograd


def outcome(name, wrap):
    torch.manual_seed(0)
    random.seed(0)
    return PROGRAMS[name](wrap), torch.rand(2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_eager(name):
    got = outcome(name, lambda f: framegraft.compile(f, backend="eager"))
    assert framegraft.testing.same(got, outcome(name, lambda f: f))


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in PROGRAMS])
def test_aot(name):
    got = outcome(name, lambda f: framegraft.compile(f, backend="aot_eager"))
    assert framegraft.testing.same(got, outcome(name, lambda f: f), exact=False)
