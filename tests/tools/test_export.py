"""framegraft.export: one flat graph, its guards and specs; errors that list every break."""

import types

import pytest
import torch
import torch.nn as nn

import framegraft
from framegraft import exc


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x, *, scale=1.0):
        y = self.norm(self.lin(x)) * scale
        return {"y": y, "both": [x, y.sum()], "n": 3}


@pytest.mark.own_code
def test_module_with_structured_results():
    model, x = Net(), torch.randn(5, 4)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    exported = framegraft.export(model, x, scale=2.0)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items()), "exporting must not run the graph"
    assert [n.op for n in exported.graph_module.graph.nodes][:2] == ["placeholder"] * 2
    assert "lin" in " ".join(dict(exported.graph_module.named_parameters()))
    twin = Net()
    twin.load_state_dict(before)
    got, expected = exported(x, scale=2.0), twin(x, scale=2.0)
    assert framegraft.testing.same(got, expected) and got["both"][0] is x
    assert torch.equal(model.norm.running_mean, twin.norm.running_mean)
    assert any("check_tensor" in g for g in exported.guards) and len(exported.guards) > 3
    with pytest.raises(exc.ExportError, match="structure"):
        exported(x)


def test_containers_and_shared_tensors():
    def f(pair, table):
        a, b = pair
        return a + b + table["k"], (table["k"] * 2, "done")

    x, y = torch.ones(2), torch.arange(2.0)
    exported = framegraft.export(f, (x, x), {"k": y, "unused": y})
    assert framegraft.testing.same(exported((x, x), {"k": y, "unused": y}), f((x, x), {"k": y, "unused": y}))
    assert len([n for n in exported.graph_module.graph.nodes if n.op == "placeholder"]) == 4


def test_every_break_is_listed():
    def f(x):
        y = x + 1
        print("a", end="")
        y = y * 2
        if y.sum() > 0:
            y = y - 1
        return y

    with pytest.raises(exc.ExportError) as caught:
        framegraft.export(f, torch.ones(2))
    text = str(caught.value)
    assert "data_dependent_branch" in text and text.count("test_export.py") >= 2


def test_what_cannot_be_exported():
    seen = []

    def keeps(x):
        seen.append(x)
        table["k"] = x
        return x + 1

    table = {}
    with pytest.raises(exc.ExportError):
        framegraft.export(keeps, torch.ones(2))
    with pytest.raises(exc.ExportError, match="nothing|no operation"):
        framegraft.export(lambda x: 3, torch.ones(2))
    with pytest.raises(exc.ExportError, match="returns a type"):
        framegraft.export(lambda x: (x + 1, object), torch.ones(2))


CHANGES = {
    "append": lambda x, box: box["list"].append(x + 1),
    "extend": lambda x, box: box["list"].extend([x + 1]),
    "update": lambda x, box: box.update(new=x * 2),
    "pop": lambda x, box: (x + box["list"].pop(), 1)[1],
    "add": lambda x, box: box["set"].add(int((x + 1).shape[0])),
    "setattr": lambda x, box: setattr(box["object"], "value", x + 1),
    "next": lambda x, box: x * next(box["iterator"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_objects_are_refused_before_they_are_made(name):
    thing = types.SimpleNamespace(value=1)
    box = {"list": [1.0], "set": {1}, "object": thing, "iterator": iter([2, 3])}

    def f(x, box):
        CHANGES[name](x, box)
        return x * 2

    with pytest.raises(exc.ExportError, match="changes objects outside"):
        framegraft.export(f, torch.ones(2), box)
    assert (box["list"], box["set"], thing.value, list(box)) == ([1.0], {1}, 1, ["list", "set", "object", "iterator"])


def test_objects_made_inside_may_change():
    def f(x):
        parts, table = [], {}
        for i in range(3):
            parts.append(x * i)
            table.update({i: x + i})
        return torch.stack(parts) + table[1]

    assert torch.equal(framegraft.export(f, torch.ones(2))(torch.ones(2)), f(torch.ones(2)))


def test_methods_and_compiled_functions():
    class A:
        k = 3

        def go(self, x):
            return x * self.k

    a, x = A(), torch.ones(2)
    assert torch.equal(framegraft.export(a.go, x)(x), x * 3)
    compiled = framegraft.compile(lambda x: x + 5, backend="eager")
    assert torch.equal(framegraft.export(compiled, x)(x), x + 5)
    assert torch.equal(compiled(x), x + 5)
