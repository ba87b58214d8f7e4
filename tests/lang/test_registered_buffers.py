"""torch.nn.Buffer set on modules, made inside and outside: what Module.__setattr__ registers by the mark that such a tensor carries."""

import torch

from .differential import differential


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = torch.nn.Buffer(torch.ones(2))
        self.left_out = torch.nn.Buffer(torch.zeros(2), persistent=False)
        self.scale = 2.0

    def forward(self, x):
        return x * self.scale + self.kept + self.left_out


def registered(module):
    return list(module._parameters), list(module._buffers), sorted(module._non_persistent_buffers_set), sorted(module.__dict__)


@differential(lambda: (torch.ones(2),), graphs=1)
def test_module_with_buffers_is_made(x):
    module = Holder()
    return module, registered(module), module.state_dict(), module(x)


@differential(lambda: (Holder(), torch.ones(2)), graphs=1)
def test_buffers_made_inside_are_set(module, x):
    module.kept = torch.nn.Buffer(x + 1, persistent=False)
    module.fresh = torch.nn.Buffer(x + 2)
    module.scale = torch.nn.Buffer(x + 3)
    return registered(module), module.kept, module.fresh


@differential(
    lambda: ([Holder() for _ in range(4)], torch.ones(2), torch.nn.Buffer(torch.ones(2)), torch.nn.Buffer(torch.ones(2), persistent=False))
)
def test_marks_of_tensors_from_outside(modules, *tensors):
    for module, tensor in zip(modules, (*tensors, torch.nn.Parameter(tensors[0])), strict=True):
        assign(module, tensor)
    return [registered(module) for module in modules]


def assign(module, tensor):
    module.fresh = tensor


@differential(lambda: (Holder(), torch.ones(2)))
def test_tensor_marked_by_hand(module, x):
    marked, parameter = x + 1, x + 2
    marked._is_buffer = True
    marked.persistent = False
    parameter._is_param = True
    module.fresh, module.weight = marked, parameter
    return registered(module)
