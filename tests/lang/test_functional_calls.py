"""torch.func.functional_call: tied tensors, modules that set their own, and what is refused."""

import torch
from torch import nn

from .differential import differential


def two():
    return torch.arange(6.0).reshape(2, 3), torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])


TIED = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
TIED[1].weight = TIED[0].weight


@differential(two, graphs=1)
def test_functional_call_of_tied_weights(x, y):
    return torch.func.functional_call(TIED, {"0.weight": torch.ones(3, 3)}, (x,)), TIED(x)


@differential(two, graphs=1)
def test_functional_call_without_ties_and_with_all_names(x, y):
    given = {name: tensor * 2 for name, tensor in TIED.state_dict().items()}
    given["1.weight"] = given["0.weight"]
    loose = torch.func.functional_call(TIED, {"0.weight": torch.ones(3, 3)}, (x,), tie_weights=False)
    return torch.func.functional_call(TIED, given, (x,), strict=True), loose, TIED(x)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("last", torch.zeros(3))
        self.register_buffer("nothing", None)

    def forward(self, x, refuse=False):
        self.count, self.last, self.nothing = self.count + 1, x.mean(0), x[0]
        if refuse:
            raise ValueError("refused")
        return x * self.weight * self.count


def counter():
    return Counter(), *two(), {"count": torch.full((), 7.0), "weight": torch.arange(3.0)}


@differential(counter, graphs=1)
def test_functional_call_of_a_module_that_sets_its_tensors(module, x, y, given):
    inside = {"count": torch.ones(()), "last": torch.ones(3)}
    found = [torch.func.functional_call(module, tensors, (x,)) for tensors in (given, inside, inside)]
    merged = {"count": y[0, 0]}, {"last": y[0]}
    return found, inside, torch.func.functional_call(module, merged, (x,)), merged, module(x)


@differential(counter)
def test_functional_call_that_raises_after_the_module_has_set(module, x, y, given):
    try:
        torch.func.functional_call(module, given, (x, True))
    except ValueError as error:
        return error.args, module.count, module.last


THREE = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
THREE[2].weight = THREE[1].weight = THREE[0].weight


@differential(two)
def test_functional_call_refuses(x, y):
    found = []
    for given, options in (
        ({"0.weight": x, "1.weight": y}, {}),
        ({"0.weight": x, "1.weight": x}, {}),
        ({"none": x}, {"strict": True}),
        ({"0.weight": x}, {"strict": True}),
    ):
        try:
            found.append(torch.func.functional_call(THREE, given, (x,), **options))
        except (KeyError, NotImplementedError, RuntimeError, ValueError) as error:
            found.append((type(error), error.args))
    return found
