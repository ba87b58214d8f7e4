"""Cases from torch's database of modules: each configuration in training and in evaluation mode."""

import copy
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_modules import module_db

from .check import Case, copied

DTYPES = (torch.float32, torch.complex64)


def names() -> list[str]:
    return [info.name for info in module_db]


def made(info: Any, found: Any, dtype: torch.dtype, training: bool) -> torch.nn.Module:
    torch.manual_seed(0)
    given = found.constructor_input
    module = info.module_cls(*copied(given.args), **copied(given.kwargs)).to(dtype)
    return module.train(training)


def case(info: Any, found: Any, name: str, dtype: torch.dtype, training: bool) -> Case:
    forward = found.forward_input
    module = made(info, found, dtype, training)

    def make(wrap: Callable) -> tuple:
        mine = copy.deepcopy(module)
        if not forward.kwargs:
            return wrap(mine), copied(tuple(forward.args)), mine

        def call(args, kwargs):
            return mine(*args, **kwargs)

        return wrap(call), copied((tuple(forward.args), dict(forward.kwargs))), mine

    return Case(name, make, gradients=True)


def cases(wanted: set[str] | None = None, count: int | None = None) -> Iterator[Case]:
    for info in module_db:
        if wanted is not None and info.name not in wanted:
            continue
        for dtype, training in itertools.product([d for d in DTYPES if d in info.supported_dtypes("cpu")], (False, True)):
            torch.manual_seed(0)
            random.seed(0)
            inputs = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
            for index, found in enumerate(inputs[:count] if count else inputs):
                if found.forward_input is None:
                    continue
                name = f"{info.name} {str(dtype)[6:]} {'train' if training else 'eval'} #{index} {found.desc}"
                yield case(info, found, name, dtype, training)
