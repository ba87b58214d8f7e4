"""Layers that repeat an earlier one: the same graph and guards as traced ones, and no layer that differs is taken for another."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import framegraft
from framegraft import _native, events
from framegraft.run import conversion

LAYERS = 6
SCALE = 2.0
seen = []


def add_scale(x):
    return x + SCALE


class Options:
    def __init__(self, factor=1.0):
        self.factor = factor


class Layer(nn.Module):
    shift = 0.5

    def __init__(self, options):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)
        self.drop = nn.Dropout(0.5)
        self.act = nn.GELU()
        self.options = options
        self.steps = [1.0, 2.0]
        self.name = "layer"
        self.then = add_scale
        self.skip = None
        self.register_buffer("table", torch.arange(4.0))

    def forward(self, x, mask=None, extra=(1.0,)):
        h = self.act(self.up(self.norm(x)))
        for step in self.steps:
            h = h * step
        h = self.drop(self.down(h)) * self.options.factor + self.shift + self.table
        if mask is not None:
            h = h.masked_fill(mask, 0.0)
        if self.skip is not None:
            h = self.skip(h)
        if self.name != "layer":
            h = h - 1
        return self.then(x + h) * extra[0]


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        options = Options()
        self.layers = nn.ModuleList(Layer(options) for _ in range(LAYERS))

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask=mask)
        return x


def stack():
    torch.manual_seed(0)
    return Stack().eval()


def graph_of(model, *args):
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    compiled = framegraft.compile(model, backend=backend)
    return compiled, graphs, compiled(*args)


def captured(model, *args):
    compiled, graphs, result = graph_of(model, *args)
    entry, = _native.cache_entries(compiled._fg_call.fn.__code__)
    assert len(graphs) == 1
    return graphs[0], sorted(entry.info.check_fn.code_parts), result


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(
            nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(inplace=True)) for _ in range(4)))

    def forward(self, x):
        return self.blocks(x)


class Mixed(nn.Module):
    """Many kinds of operations: new tensors, views, writes, random numbers, tensors of integers and of truth values."""

    def __init__(self, frozen):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.requires_grad_(not frozen)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        h = F.silu(self.up(self.norm(x)))
        share = torch.cat([h, x], -1).mean(-1, keepdim=True)
        chosen = torch.where(h > 0, h, self.down(h))
        best, at = chosen.max(-1, keepdim=True)
        filled = chosen.clone()
        filled.add_(1).mul_(share)
        filled[0] = 0
        self.count.add_(at.sum())
        heads = x.view(2, 3, 2, 4).transpose(1, 2)
        seen = F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).reshape(x.shape)
        ones = torch.ones_like(h, requires_grad=False)
        left, right = torch.stack([seen, ones]).unbind()
        dropped = F.dropout(filled, 0.3, self.training) * best.detach()
        return x + dropped * left.contiguous() + right.to(torch.float32) + torch.einsum("bld,bld->bl", h, x)[..., None]


class MixedStack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(map(Mixed, (False, True, False, True, False, False, True)))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).eval()


def hugging_face(name, **settings):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = getattr(transformers, f"{name}Config")(
        vocab_size=64, hidden_size=16, num_hidden_layers=4, num_attention_heads=2, intermediate_size=32, **settings)
    return getattr(transformers, f"{name}Model")(config).eval()


class Tuples(nn.Module):
    """Operations that give several tensors, None, or one of their operands."""

    def __init__(self):
        super().__init__()
        self.attention, self.drop = nn.MultiheadAttention(8, 2, batch_first=True), nn.Dropout(0.5)
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x):
        h, weights = self.attention(x, x, x)
        spread, mean = torch.var_mean(h, -1, keepdim=True)
        alone = self.attention(h.to(x.dtype), h.float(), h, need_weights=False)
        same = F.dropout(self.drop(alone[0]), 0.0)
        left, right = (same * self.scale).chunk(2, -1)
        rows = torch.unbind(weights.unflatten(1, (1, -1)).movedim(0, 1))
        best, at = weights.max(-1)
        return x + torch.cat([left, right], -1) * spread + mean + rows[0].sum() + best[..., None] + at.to(x.dtype)[..., None]


class TupleStack(MixedStack):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Tuples() for _ in range(5))


def trained_encoder():
    return encoder().train()


class Part(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("table", torch.ones(size))

    def forward(self, x):
        return x + torch.outer(x.flatten()[:1], self.table).sum()


class Whole(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.part, self.act = Part(size), nn.Tanh()

    def forward(self, x):
        return self.act(self.part(x))


class CalledAgain(nn.Module):
    """Parts of layers are called again, behind the layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(map(Whole, (4, 4, 4, 4, 5)))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for layer in self.layers[2:]:
            x = layer.part(x)
        return x


MODELS = {
    "parts called again": (CalledAgain, lambda: torch.randn(2, 4)),
    "mixed": (lambda: MixedStack().eval(), lambda: torch.randn(2, 3, 8)),
    "mixed, trained": (lambda: MixedStack().train(), lambda: torch.randn(2, 3, 8)),
    "stack": (stack, lambda: torch.randn(2, 4)),
    "convolutions": (lambda: Convolutions().train(), lambda: torch.randn(2, 3, 8, 8)),
    "tuples": (lambda: TupleStack().eval(), lambda: torch.randn(2, 5, 8)),
    "trained encoder": (trained_encoder, lambda: torch.randn(2, 5, 8)),
    "encoder": (encoder, lambda: torch.randn(2, 5, 8)),
    "bert": (lambda: hugging_face("Bert"), lambda: torch.randint(0, 64, (2, 5))),
    "llama": (lambda: hugging_face("Llama", num_key_value_heads=1), lambda: torch.randint(0, 64, (2, 5))),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("grad", [False, True])
def test_same_graph_and_guards(name, grad, monkeypatch):
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model, given = make(), inputs()
    check_against_traced(model, copy.deepcopy(model), given, grad, monkeypatch)


def check_against_traced(model, other, given, grad, monkeypatch):
    """A capture with blocks gives the graph, its metadata and the guards of one without, here of an equal model."""
    with torch.set_grad_enabled(grad):
        torch.manual_seed(1)
        gm, guards, result = captured(model, given)
        torch.manual_seed(1)
        monkeypatch.setattr(conversion, "Blocks", lambda *args: None)
        framegraft.reset()
        traced, traced_guards, expected = captured(other, given)
    assert gm.code == traced.code
    assert [n.name for n in gm.graph.nodes] == [n.name for n in traced.graph.nodes]
    assert [n.meta.get("source") for n in gm.graph.nodes] == [n.meta.get("source") for n in traced.graph.nodes]

    def shapes(graph):
        memory = {}
        return [(n.name, t.shape, t.stride(), t.dtype, t.device, t.requires_grad, t.is_leaf, t._is_view(), t._version, t.storage_offset(),
                 t.untyped_storage().nbytes(), memory.setdefault(t.untyped_storage()._cdata, len(memory))) for n in graph.graph.nodes
                if isinstance(t := n.meta.get("example_value"), torch.Tensor)]

    assert shapes(gm) == shapes(traced)
    # ids of functions and classes stay, those of the copy's own objects differ
    assert len(guards) == len(traced_guards)
    assert [g.partition("id(")[0] for g in guards] == [g.partition("id(")[0] for g in traced_guards]
    torch.testing.assert_close(tensors(result), tensors(expected))


def tensors(output):
    return [v for v in output.to_tuple() if isinstance(v, torch.Tensor)] if hasattr(output, "to_tuple") else output


def test_repeated_layers_are_not_traced():
    state = {}
    convert_blocks = conversion.Blocks

    class Watched(convert_blocks):
        def _repeat(self, tx, block, fn, arguments):
            found = super()._repeat(tx, block, fn, arguments)
            state[fn.cls.__name__] = state.get(fn.cls.__name__, 0) + (found is not None)
            return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversion, "Blocks", Watched)
        captured(stack(), torch.randn(2, 4))
    assert state["Layer"] == LAYERS - 2  # the first has the caller's tensor, the second what a layer made


def _set(name, value):
    return lambda layer: setattr(layer, name, value)


class Other(Layer):
    shift = 0.75


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2


def _own_forward(layer):
    layer.forward = lambda x, mask=None: x * 3


def _hook(layer):
    layer.register_forward_hook(lambda module, args, out: out + 1)


def _inner_hook(layer):
    layer.up.register_forward_pre_hook(lambda module, args: (args[0] * 2,))


def _same_as_first(layer):
    layer.up = FIRST[0].up


def _tied(layer):
    layer.down.weight = FIRST[0].down.weight


FIRST = []

CHANGES = {
    "number": lambda layer: setattr(layer.norm, "eps", 0.5),
    "text": _set("name", "other"),
    "list": lambda layer: layer.steps.append(3.0),
    "item": lambda layer: layer.steps.__setitem__(0, 4.0),
    "function": _set("then", torch.relu),
    "submodule": _set("act", nn.Tanh()),
    "option": _set("options", Options(3.0)),
    "skip": _set("skip", Doubled()),
    "training": lambda layer: layer.norm.train(),
    "dropout of zero": lambda layer: setattr(layer.drop, "p", 0.0),
    "no bias": lambda layer: layer.up.register_parameter("bias", None),
    "no grad": lambda layer: layer.up.weight.requires_grad_(False),
    "shape": lambda layer: (setattr(layer, "up", nn.Linear(4, 16)), setattr(layer, "down", nn.Linear(16, 4))),
    "stride": lambda layer: setattr(layer.up, "weight", nn.Parameter(torch.randn(4, 8).t())),
    "class": _set("__class__", Other),
    "own forward": _own_forward,
    "hook": _hook,
    "inner hook": _inner_hook,
    "shared submodule": _same_as_first,
    "tied weight": _tied,
    "own attribute of the class": _set("shift", 0.25),
    "buffer": _set("table", torch.ones(4)),
    "broadcast buffer": _set("table", torch.ones(1)),
    "new data": lambda layer: layer.up.weight.data.mul_(2),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("where", [0, 1, 3, LAYERS - 1])
def test_a_layer_that_differs(change, where):
    model, x = stack(), torch.randn(2, 4)
    FIRST[:] = [model.layers[0]]
    CHANGES[change](model.layers[where])
    compiled, graphs, result = graph_of(model, x)
    torch.testing.assert_close(result, model(x))
    torch.testing.assert_close(compiled(x), model(x))
    assert framegraft.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("where", [0, 3])
def test_a_layer_that_changes_later(change, where):
    model, x = stack(), torch.randn(2, 4)
    FIRST[:] = [model.layers[0]]
    compiled, _, result = graph_of(model, x)
    torch.testing.assert_close(result, model(x))
    CHANGES[change](model.layers[where])
    torch.testing.assert_close(compiled(x), model(x))


def test_guards_of_repeated_layers_are_told_where_they_are():
    class Made(events.Listener):
        def entry_made(self, event):
            self.event = event

    model, x = stack(), torch.randn(2, 4)
    with events.listening(Made()) as made:
        compiled, _, _ = graph_of(model, x)
    event = made.event
    check, program = event.entry.info.check_fn, event.entry.program
    texts = [guard.code() for guard in event.guards]
    assert texts == check.code_parts and len(texts) == len(event.guards) == check.count == len(program) > 100
    assert [g.check for g in event.guards] == check.kinds and [g.cause for g in event.guards] == check.causes
    assert event.guards[-1].code() == texts[-1] and [g.code() for g in event.guards[3:5]] == texts[3:5]
    assert not any("\N{WHITE SQUARE}" in text for text in texts)
    for at, layer in enumerate(model.layers):
        for kind, change, undo in (("TENSOR", layer.down.double, layer.down.float), ("EQ", lambda: _eps(layer, 0.5), lambda: _eps(layer, 1e-5))):
            assert program.explain(event.args, event.fn) is None
            change()
            number, _ = program.explain(event.args, event.fn)
            assert check.kinds[number] == kind
            assert f"._modules['layers']._modules['{at}']._modules['{'down' if kind == 'TENSOR' else 'norm'}']" in texts[number]
            undo()


def _eps(layer, value):
    layer.norm.eps = value


class Doubled(nn.Module):
    """A module below it is called twice, and has a second name."""

    def __init__(self):
        super().__init__()
        self.second = nn.Linear(4, 4)
        self.first = nn.Sequential(self.second, nn.GELU())
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.first(x) + self.relu(self.second(x)))


def test_modules_called_twice_in_each_layer():
    model, x = nn.Sequential(nn.Linear(4, 4), *(Doubled() for _ in range(4))), torch.randn(2, 4)
    with torch.no_grad():
        compiled = framegraft.compile(model, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)
        model[3].second = nn.Linear(4, 4)  # no longer the one that is called with another name
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)
        model[2].relu = nn.Tanh()
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)


def test_one_module_many_times():
    layer, x = stack().layers[0], torch.randn(2, 4)
    model = nn.Sequential(layer, layer, layer)
    _, graphs, result = graph_of(model, x)
    torch.testing.assert_close(result, model(x))
    assert sum(n.op == "placeholder" for n in graphs[0].graph.nodes) == 1 + 7


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        seen.append(self.calls)
        return x * self.weight + len(seen)


def test_effects_are_done_for_each_layer():
    model, x = nn.Sequential(*(Counting() for _ in range(4))), torch.randn(4)
    seen.clear()
    _, _, result = graph_of(model, x)
    assert seen == [1] * 4 and [m.calls for m in model] == [1] * 4
    seen.clear()
    torch.testing.assert_close(result, model(x))


class Reading(nn.Module):
    """Looks at what another object, made in the trace, holds by now."""

    def __init__(self, shared):
        super().__init__()
        self.shared = shared

    def forward(self, x):
        return x + len(self.shared.log)


def test_what_changes_between_the_layers():
    shared = Options()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Reading(shared) for _ in range(4))

        def forward(self, x):
            shared.log = []
            for layer in self.layers:
                x = layer(x) * 2
                shared.log.append(1)
            return x

    model, x = Model(), torch.randn(4)
    _, _, result = graph_of(model, x)
    torch.testing.assert_close(result, model(x))


def test_position_among_others():
    class Picky(nn.Module):
        def __init__(self, special):
            super().__init__()
            self.special = special

        def forward(self, x):
            return x * 2 if self in self.special else x + 1

    special: list = []
    model = nn.Sequential(*(Picky(special) for _ in range(5)))
    special += [model[1], model[3]]
    x = torch.randn(4)
    compiled, _, result = graph_of(model, x)
    torch.testing.assert_close(result, model(x))
    special.pop()
    torch.testing.assert_close(compiled(x), model(x))


def test_modes_between_layers():
    class Model(Stack):
        def forward(self, x):
            for index, layer in enumerate(self.layers):
                with torch.set_grad_enabled(index % 2 == 0):
                    x = layer(x)
            return x

    model, x = Model().eval(), torch.randn(2, 4, requires_grad=True)
    _, _, result = graph_of(model, x)
    expected = model(x)
    torch.testing.assert_close(result, expected)
    assert result.requires_grad == expected.requires_grad


@pytest.mark.parametrize("grad", [False, True])
def test_views_and_writes(grad):
    class Writing(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x):
            self.total += x.sum(0)
            half = x[:, :2]
            half.mul_(2)
            x.transpose(0, 1).unsqueeze(0).add_(1)
            x.t().reshape(2, 4).add_(5)  # of a copy
            self.total.view(2, 2).permute(1, 0).mul_(0.5)
            return x.reshape(4, 2).transpose(0, 1).contiguous()

    model = nn.Sequential(*(Writing() for _ in range(4)))
    other, x = copy.deepcopy(model), torch.randn(2, 4)
    y = x.clone()
    with torch.set_grad_enabled(grad):
        _, _, result = graph_of(model, x)
    torch.testing.assert_close(result, other(y))
    torch.testing.assert_close(x, y)
    for a, b in zip(model.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(a, b)


def test_sizes_that_change():
    model = stack()
    compiled = framegraft.compile(model, backend="eager")
    for n in (2, 3, 5, 1, 7):
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled(x), model(x))


class Picking(nn.Module):
    """A layer whose inner part has sizes that the data decides."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.ReLU())

    def forward(self, x):
        chosen = x[x[:, 0] > 0]
        return x + (self.inner(chosen) * 2).reshape(-1, 4).transpose(0, 1).sum(1)


@pytest.mark.parametrize("layers", [1, 3])
def test_sizes_that_the_data_decides(layers):
    """Looking at an operation's result, in case that the call repeats, guards no size."""
    model = nn.Sequential(*(Picking() for _ in range(layers)))
    compiled = framegraft.compile(model, backend="eager", fullgraph=True)
    for n in (2, 5, 3):
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled(x), model(x))
    assert torch.equal(compiled(-x.abs()), model(-x.abs()))


class Sums(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, x):
        return x * self.weight.sum() + self.weight.max()


def test_inference_mode():
    model, x = nn.Sequential(*(Sums() for _ in range(4))), torch.randn(2, 4)
    with torch.inference_mode():
        compiled, _, result = graph_of(model, x)
        assert framegraft.stats()["graph_breaks"] == 0 and result.is_inference()
        torch.testing.assert_close(result, model(x))
        model[2].weight.data.mul_(2)
        torch.testing.assert_close(compiled(x), model(x))
