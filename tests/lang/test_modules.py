"""nn.Module: parameters, buffers, containers, hooks, train and eval."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import framegraft

from .differential import differential


def seeded(make):
    def inputs():
        state = torch.get_rng_state()
        torch.manual_seed(1)
        module = make()
        torch.set_rng_state(state)
        return module, torch.linspace(-1, 1, 8).reshape(2, 4)

    return inputs


class Block(nn.Module):
    scale = 2.0

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.register_buffer("steps", torch.zeros(1))
        self.register_buffer("unset", None)
        self.calls = 0

    def forward(self, x, residual=True):
        y = F.relu(self.lin(self.norm(x))) * self.scale
        return x + y if residual else y


class Counting(Block):
    def forward(self, x):
        self.calls += 1
        self.steps += 1
        self.last = super().forward(x)
        return self.last * self.calls + self.steps


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        self.seq = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Dropout(0.5))
        self.params = nn.ParameterList([nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))])
        self.extra = nn.ParameterDict({"k": nn.Parameter(torch.full((4,), 2.0))})

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) * (i + 1)
        for name, act in self.named.items():
            x = act(x) + len(name)
        x = self.seq(x) + self.seq[0](x)
        for p in self.params:
            x = x + p
        return x * self.extra["k"] + len(self.layers), self.layers[-1].weight.sum(), "a" in self.named


def hooked():
    b = Block()
    b.log = []

    def pre(module, args):
        module.log.append("pre")
        return (args[0] * 2,)

    def post(module, args, output):
        module.log.append("post")
        return output + 1

    b.register_forward_pre_hook(pre)
    b.register_forward_hook(post)
    b.lin.register_forward_hook(lambda m, a, out: out * 3)
    b.register_forward_pre_hook(lambda m, a, k: (a, {"residual": False}), with_kwargs=True)
    return b


def run(m, x):
    return m(x)


@differential(seeded(Block), graphs=1)
def test_block(m, x):
    return m(x), m(x, residual=False), m.lin.weight.sum()


@differential(seeded(Block), graphs=1)
def test_block_eval(m, x):
    m.eval()
    return m(x), m.training, m.lin.training


@differential(seeded(Counting))
def test_state_written_in_forward(m, x):
    a = m(x)
    b = m(a)
    return b, m.calls, m.steps, m.last is b


@differential(seeded(Containers))
def test_containers(m, x):
    return m(x)


@differential(seeded(hooked))
def test_hooks(m, x):
    return m(x), m.log


@differential(seeded(lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))))
def test_batch_norm_updates_buffers(m, x):
    a = m(x)
    m.eval()
    return a, m(x), m[1].running_mean, m[1].num_batches_tracked


@differential(seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2))))
def test_dropout(m, x):
    return m(x), m.eval()(x), m.train()(x)


@differential(seeded(Containers))
def test_walking(m, x):
    names = [n for n, _ in m.named_parameters()]
    total = sum(p.sum() for p in m.parameters())
    kinds = [type(c).__name__ for c in m.modules()]
    return names, total, kinds, [n for n, _ in m.named_children()], len(m.state_dict()), x + 1


@differential(seeded(Block))
def test_attributes_set_inside(m, x):
    m.scale = 5.0
    m.note = "n"
    m.cache = x * 2
    y = m(x)
    del m.note
    return y, m.cache, hasattr(m, "note"), getattr(m, "missing", 1)


@differential(seeded(Block))
def test_missing_attribute(m, x):
    try:
        m.nothing
    except AttributeError as error:
        return m(x), str(error)


@differential(seeded(Block))
def test_parameter_replaced_inside(m, x):
    m.lin.weight = nn.Parameter(torch.eye(4))
    m.steps = torch.ones(1)
    return m(x), m.steps


@differential(seeded(Block), build=False)
def test_module_made_inside(m, x):
    layer = nn.Linear(4, 2, bias=False)
    with torch.no_grad():
        layer.weight.fill_(0.5)
    return layer(x), m(x)


@differential(seeded(lambda: nn.LSTM(4, 3, batch_first=True)))
def test_lstm(m, x):
    out, (h, c) = m(x[None])
    return out, h, c


@differential(seeded(lambda: nn.MultiheadAttention(4, 2, batch_first=True).eval()))
def test_attention(m, x):
    return m(x[None], x[None], x[None])


@differential(seeded(lambda: nn.Embedding(5, 4)))
def test_embedding(m, x):
    return m(torch.tensor([1, 0, 3])) + x[:1], m.weight[0], m.num_embeddings


@differential(seeded(Block))
def test_print_in_forward(m, x):
    class Noisy(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, v):
            v = self.inner(v)
            print("norm", v.shape)
            return self.inner(v)

    return Noisy(m)(x)


class TwoLayers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.ReLU()

    def forward(self, x, scale: int = 2):
        return self.second(self.first(x)) * scale


def traced_by_fx():
    torch.manual_seed(0)
    return torch.fx.symbolic_trace(TwoLayers()), torch.ones(2, 3)


@differential(traced_by_fx)
def test_modules_that_fx_has_made(module, x):
    return module(x) + 1, module.first.weight.sum(), len(list(module.children()))


def test_a_module_that_fx_has_made_changes():
    module, x = traced_by_fx()
    counter = framegraft.testing.CompileCounter()
    compiled = framegraft.compile(module, backend=counter, fullgraph=True)
    for change in (lambda: None, lambda: None, lambda: module.graph.output_node().replace_input_with(
            module.graph.output_node().args[0], module.graph.find_nodes(op="placeholder")[0])):
        change()
        module.recompile()
        assert torch.equal(compiled(x), module(x))


@differential(seeded(Block), graphs=1)
def test_module_to_what_it_is_already(block, x):
    same = block.to(x.dtype) is block, block.float().lin.weight is block.lin.weight
    return block(x), same, block.to("cpu")(x), block.lin.weight.is_leaf


@differential(seeded(Block))
def test_module_to_another_dtype(block, x):
    weight = block.lin.weight
    return block.to(torch.float64)(x.double()), block.lin.weight is weight, weight.dtype
