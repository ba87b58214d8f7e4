"""torch.nn.Buffer set on modules, made inside and outside: what Module.__setattr__ registers by the mark that such a tensor carries."""

import torch

import framegraft

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


@differential(lambda: (torch.nn.BatchNorm1d(2), torch.ones(2)))
def test_hooks_that_see_buffers_registered(module, x):
    seen = []

    def hook(module, name, tensor):
        seen.append(name)
        return tensor + 1

    handle = torch.nn.modules.module.register_module_buffer_registration_hook(hook)
    try:
        module.running_mean = x
        module.fresh = torch.nn.Buffer(x)
    finally:
        handle.remove()
    module.running_var = x
    return seen, registered(module), module.running_mean, module.running_var, module.fresh


def test_hook_that_comes_later():
    module, seen = torch.nn.BatchNorm1d(2), []

    def f(x):
        module.running_mean = x
        return x + 1

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    compiled(torch.zeros(2))
    handle = torch.nn.modules.module.register_module_buffer_registration_hook(
        lambda module, name, tensor: seen.append((name, tensor.tolist()))
    )
    try:
        compiled(torch.ones(2))
    finally:
        handle.remove()
    assert seen == [("running_mean", [1.0, 1.0])] and torch.equal(module.running_mean, torch.ones(2))
