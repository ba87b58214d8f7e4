"""What the programs share. Each trains a few steps with what ``wrap`` makes of its functions, and returns what it saw."""

import torch.nn as nn

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def params(m):
    return [p.detach().clone() for p in m.parameters()] + [b.clone() for b in m.buffers()]


def grads(m):
    return [None if p.grad is None else p.grad.clone() for p in m.parameters()]


def mlp(i=4, h=8, o=3):
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, o))
