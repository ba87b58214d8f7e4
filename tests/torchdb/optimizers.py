"""Cases from torch's database of optimizers: each configuration, single tensors and ``foreach``, three steps."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_optimizers import _get_optim_inputs_including_global_cliquey_kwargs, optim_db

from .check import Case, copied

STEPS = 3
SHAPES = ((2, 3), (3,), (4, 2))


def names() -> list[str]:
    return [info.name for info in optim_db]


def case(info: Any, kwargs: dict, name: str, dtype: torch.dtype) -> Case:
    def make(wrap: Callable) -> tuple:
        torch.manual_seed(0)
        params = [torch.nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in SHAPES]
        if info.only_supports_sparse_grads:
            grads = [[torch.randn_like(p).to_sparse() for p in params] for _ in range(STEPS)]
        else:
            grads = [[torch.randn_like(p) for p in params] for _ in range(STEPS)]
        if kwargs.get("differentiable"):
            params = [p.detach().clone().requires_grad_() * 1 for p in params]
            for p in params:
                p.retain_grad()
        optimizer = info.optim_cls(params, **copied(kwargs))

        def closure():
            return sum((p.detach().abs() ** 2).sum() for p in params)

        def step():
            return optimizer.step(closure) if info.step_requires_closure else optimizer.step()

        captured = wrap(step)

        def call():
            for i in range(STEPS):
                for p, g in zip(params, grads[i], strict=True):
                    p.grad = g.clone()
                captured()

        return call, (), (params, optimizer.state, optimizer.param_groups)

    return Case(name, make)


def cases(wanted: set[str] | None = None, count: int | None = None) -> Iterator[Case]:
    for info in optim_db:
        if wanted is not None and info.name not in wanted:
            continue
        dtypes = [torch.float32, torch.complex64] if info.supports_complex else [torch.float32]
        for dtype in dtypes:
            found = _get_optim_inputs_including_global_cliquey_kwargs("cpu", dtype, info)
            for index, given in itertools.islice(enumerate(found), count):
                flags = " ".join(k for k, v in given.kwargs.items() if v is True)
                yield case(info, given.kwargs, f"{info.name} {str(dtype)[6:]} {flags} #{index} {given.desc}", dtype)
