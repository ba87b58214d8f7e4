"""Operations whose results nobody uses, behind AOTAutograd: they draw random numbers and raise, as in eager mode."""

import operator

import pytest
import torch
import torch.nn.functional as F
from torch.fx import Graph, GraphModule

import framegraft
from framegraft.backends.unused import with_unused


def draws(x, i):
    torch.rand(3)
    return x + torch.rand(3)


def fills(x, i):
    y = torch.zeros(3)
    y.normal_()
    return x * torch.rand(3)


def drops(x, i):
    F.dropout(x, 0.5)
    return F.dropout(x, 0.5)


def draws_pairs(x, i):
    torch.multinomial(x.abs(), 2)
    torch.max(torch.rand(3), 0)
    return x + torch.rand(3)


def attends(x, i):
    q = torch.rand(1, 2, 4, 4)
    F.scaled_dot_product_attention(q, q, q, dropout_p=0.3)
    return x + torch.rand(3)


def indexes(x, i):
    x[i] * 2
    return x + 1


def looks_up(x, i):
    F.embedding(i, x[:, None])
    return x * 2


def inverts(x, i):
    torch.linalg.inv(torch.eye(3) * (i - 9))
    return x + 1


def sets(x, i):
    y = torch.zeros(3)
    y[1:][i] = 1
    return x + 1


def divides(x, i):
    i // (i - 9)
    return x * 3


def writes_what_lives(x, i):
    x.detach()[0] += 1
    y = x * 1
    y.view(-1).mul_(2)
    return y


def writes_by_keyword(x, i):
    y = x * 1
    torch.relu_(input=y)
    torch._foreach_mul_(self=[y], scalar=2)
    torch.ops.aten.add_.Tensor(self=y.view(-1), other=y)
    return y


@pytest.mark.parametrize("index", [1, 9])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("body", [draws, fills, drops, draws_pairs, attends, indexes, looks_up, inverts, sets, divides, writes_what_lives,
                                  writes_by_keyword])
def test_as_in_eager_mode(body, grad, index):
    def run(fn):
        torch.manual_seed(3)
        found = []
        for _ in range(2):
            x = torch.arange(3.0).add(1).requires_grad_(grad)
            try:
                out = fn(x, torch.tensor([index]))
                if grad:
                    out.sum().backward()
                found.append((out.tolist(), x.tolist(), grad and x.grad.tolist(), torch.rand(1).item()))
            except (RuntimeError, IndexError) as error:
                found.append((type(error), str(error)))
        return found

    assert run(framegraft.compile(body, backend="aot_eager", fullgraph=True)) == run(body)


@pytest.mark.slow
@pytest.mark.inductor
@pytest.mark.parametrize("body", [indexes, inverts, divides])
def test_inductor_raises(body):
    compiled = framegraft.compile(body, backend="inductor")
    x = torch.arange(3.0)
    assert torch.equal(compiled(x, torch.tensor([1])), body(x, torch.tensor([1])))
    with pytest.raises((RuntimeError, IndexError)):
        compiled(x, torch.tensor([9]))


def test_what_cannot_be_seen_is_left_out():
    """Views and sums of unused values, and what writes to an output, need no further outputs."""
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.relu, (x,))
    graph.call_method("view", (x, -1))
    graph.call_method("sum", (graph.call_function(torch.exp, (x,)),))
    write = graph.call_function(operator.setitem, (y, 0, 1.0))
    graph.output((y,))
    for node, value in ((x, torch.ones(2)), (y, torch.zeros(2)), (write, None)):
        node.meta["example_value"] = value
    for node in graph.nodes:
        if node.op.startswith("call") and node is not write:
            node.meta.setdefault("example_value", torch.ones(2))
    gm = GraphModule(torch.nn.Module(), graph)
    assert with_unused(gm) == (gm, 0)


class Heads(torch.nn.Module):
    """One output depends on the other, so that AOTAutograd gets two graphs; what nobody uses is in the first."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)

    def forward(self, x):
        F.adaptive_avg_pool1d(self.norm(x)[None].transpose(1, 2), 1)
        first = self.first(x)
        return first, self.second(first)


def test_what_nobody_uses_gives_no_gradient_in_a_graph_of_parts():
    net = Heads()
    sum(map(torch.sum, framegraft.compile(net, backend="aot_eager")(torch.ones(2, 4)))).backward()
    assert net.norm.weight.grad is None and net.first.weight.grad is not None
