"""Programs that put functions of their own in the place of torch's: a graph calls what the program called."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import framegraft

GELU, RELU, SOFTMAX, ZEROS, ADD = F.gelu, F.relu, F.softmax, torch.zeros, torch.add


def held_gelu(x: torch.Tensor) -> torch.Tensor:
    return GELU(x) * 2


def named_gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x) * 2


def both(x: torch.Tensor) -> torch.Tensor:
    return GELU(x) + F.gelu(x)


def held_relu(x: torch.Tensor) -> torch.Tensor:
    return RELU(x, inplace=False) * 2


def held_softmax(x: torch.Tensor) -> torch.Tensor:
    return SOFTMAX(x, dim=0)


def held_zeros(x: torch.Tensor) -> torch.Tensor:
    return x + ZEROS(6)


def named_zeros(x: torch.Tensor) -> torch.Tensor:
    return x + torch.zeros(6)


def held_add(x: torch.Tensor) -> torch.Tensor:
    return ADD(x, 1)


PLACES = {
    held_gelu: [(F, "gelu"), (torch._C._nn, "gelu")],
    named_gelu: [(F, "gelu"), (torch._C._nn, "gelu")],
    both: [(F, "gelu"), (torch._C._nn, "gelu")],
    held_relu: [(F, "relu"), (torch, "relu")],
    held_softmax: [(F, "softmax")],
    held_zeros: [(torch, "zeros")],
    named_zeros: [(torch, "zeros")],
    held_add: [(torch, "add")],
}
CASES = [pytest.param(fn, *place, id=f"{fn.__name__}-{place[0].__name__}") for fn, places in PLACES.items() for place in places]


def plus_one(fn: Any) -> Any:
    return lambda *args, **kwargs: fn(*args, **kwargs) + 1


@pytest.mark.parametrize("when", ["before", "between", "undone"])
@pytest.mark.parametrize(("fn", "place", "name"), CASES)
def test_function_of_the_program(monkeypatch: pytest.MonkeyPatch, fn: Any, place: Any, name: str, when: str) -> None:
    x = torch.linspace(-2, 2, 6)
    compiled = framegraft.optimize("eager")(fn)
    if when == "between":
        compiled(x)
    with monkeypatch.context() as patch:
        patch.setattr(place, name, plus_one(getattr(place, name)))
        if when == "undone":
            compiled(x)
        else:
            for _ in range(2):
                assert compiled(x).equal(fn(x))
    assert compiled(x).equal(fn(x))


def test_constants_of_the_code() -> None:
    """dtypes, layouts and what else a graph's code finds in ``torch``."""

    def f(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float64).contiguous(memory_format=torch.contiguous_format) + torch.zeros(6, dtype=torch.int32, layout=torch.strided)

    x = torch.ones(6)
    assert framegraft.optimize("eager", nopython=True)(f)(x).equal(f(x))


def test_copies_of_graphs() -> None:
    graphs = []

    def backend(gm: torch.fx.GraphModule, example_inputs: list) -> Any:
        graphs.append(gm)
        return gm

    x = torch.linspace(-2, 2, 6)
    framegraft.optimize(backend)(named_gelu)(x)
    assert copy.deepcopy(graphs[0])(x)[0].equal(named_gelu(x))
    graphs[0].recompile()
    assert graphs[0](x)[0].equal(named_gelu(x))
