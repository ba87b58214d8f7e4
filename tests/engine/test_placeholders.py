"""Names of a graph's inputs: each its own, and the same one in the graph and in its code."""

import copy
import inspect
import pickle
from types import SimpleNamespace as Space

import pytest
import torch

import framegraft

ONE = Space(b=Space(c_d=torch.ones(2), Cd=torch.full((2,), 3.0)), b_c=Space(d=torch.full((2,), 2.0)), c=[torch.full((2,), 4.0)] * 2)
TWO = Space(c={0: torch.full((2,), 5.0), "0": torch.full((2,), 6.0)})


def names_made_of_the_same_words(x):
    return x + ONE.b.c_d - ONE.b_c.d * ONE.b.Cd / ONE.c[0] + TWO.c[0] * TWO.c["0"]


def names_of_torch_and_python(torch, device, inf, self, print, add, Upper, é):  # noqa: A002, PLC2401
    y = torch.to("cpu") + device + inf + self + add.new_zeros(2, device="cpu")
    return (y + print).clamp(max=float("inf")) + Upper * é, y.to(dtype=add.dtype)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.norm = torch.nn.BatchNorm1d(2)
        self.modules_ = torch.nn.ModuleList([torch.nn.Linear(2, 2)])

    def forward(self, x):
        return self.modules_[0](self.norm(self.fc(x)))


def placeholders(fn, *args):
    made = []

    def compiler(gm, example_inputs):
        made.append(gm)
        return gm.forward

    framegraft.reset()
    assert str(framegraft.compile(fn, backend=compiler)(*args)) == str(fn(*args))
    (gm,) = made
    nodes = [n for n in gm.graph.nodes if n.op == "placeholder"]
    assert [n.name for n in nodes] == [n.target for n in nodes] == list(inspect.signature(gm.forward).parameters)
    return {n.meta["source"]: n.name for n in nodes}


def test_paths_of_the_same_words():
    assert len(placeholders(names_made_of_the_same_words, torch.ones(2))) == 7


def test_names_that_stand_for_something_else():
    fn = names_of_torch_and_python
    args = [torch.full((2,), float(n)) for n in range(fn.__code__.co_argcount)]
    assert len(placeholders(fn, *args)) == len(args)


@pytest.mark.parametrize("train", [False, True])
def test_parts_of_modules_have_the_names_that_programs_use(train):
    made = placeholders(Layer().train(train), torch.ones(3, 2))
    assert made["L['module']._modules['fc']._parameters['weight']"] == "l_module_fc_weight"
    assert made["L['module']._modules['modules_']._modules['0']._parameters['bias']"] == "l_module_modules_0_bias"
    assert made["L['module']._modules['norm']._buffers['running_mean']"] == "l_module_norm_running_mean"


def graph_of(fn, *args):
    made = []
    framegraft.reset()
    framegraft.compile(fn, backend=lambda gm, inputs: made.append((gm, inputs)) or gm.forward)(*args)
    return made[0]


@pytest.mark.parametrize("name", [None, "torch", "device", "for", "a b", "add_1"])
def test_code_is_what_torch_writes(name):
    """Also where somebody gives a node a name that is none, or that of another."""
    fn = names_of_torch_and_python
    gm, _ = graph_of(fn, *(torch.full((2,), float(n)) for n in range(fn.__code__.co_argcount)))
    assert type(gm.graph) is not torch.fx.Graph
    if name is not None:
        next(n for n in gm.graph.nodes if n.name == "add_3").name = name
        gm.recompile()
    assert gm.code == torch.fx.Graph.python_code(gm.graph, "self").src
    compile(gm.code, "<code>", "exec")


def test_graphs_are_copied_pickled_and_changed_as_others():
    model, x = Layer().eval(), torch.ones(3, 2)
    expected = model(x)
    gm, inputs = graph_of(model, x)
    copies = [copy.deepcopy(gm), copy.copy(gm), torch.fx.GraphModule(gm, copy.deepcopy(gm.graph))]
    assert {other.code for other in copies} == {gm.code}
    for other in (*copies, pickle.loads(pickle.dumps(gm))):
        assert torch.equal(other(*inputs)[0], expected)
    (*_, output) = gm.graph.nodes
    with gm.graph.inserting_before(output):
        output.args = ((gm.graph.call_function(torch.neg, (output.args[0][0],)),),)
    gm.recompile()
    assert torch.equal(gm(*inputs)[0], -expected)
