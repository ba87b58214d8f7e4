"""Arguments of torch.autograd.Function.apply whose type a graph's code does not tell: forward and backward see what the program passed."""

import collections
import enum
import typing

import torch

import framegraft

from .differential import differential


def leaf():
    return (torch.arange(1.0, 5.0, requires_grad=True),)


class Plain(enum.Enum):
    LOW = 0
    HIGH = 1


class Number(enum.IntEnum):
    LOW = 0
    HIGH = 1


class Flags(enum.Flag):
    ONE = 1
    TWO = 2


class Word(str, enum.Enum):
    LOW = "low"


Pair = collections.namedtuple("Pair", "first second")  # noqa: PYI024 - a class without annotations


class Typed(typing.NamedTuple):
    factor: torch.Tensor
    count: int = 2


class Own(tuple):
    pass


class Told(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, value):
        ctx.value = value
        return x * len(type(value).__name__)

    @staticmethod
    def backward(ctx, grad):
        return grad * len(type(ctx.value).__name__), None


class Names(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, value):
        ctx.value = value
        return x * len(value.name) * (2 if value is Number.HIGH or value is Plain.HIGH else 3)

    @staticmethod
    def backward(ctx, grad):
        return grad * len(ctx.value.name), None


@differential(leaf, graphs=1)
def test_members_of_enumerations(x):
    return [Names.apply(x, value) for value in (Plain.LOW, Plain.HIGH, Number.LOW, Number.HIGH, Flags.ONE, Word.LOW)]


@differential(lambda: (*leaf(), Plain.HIGH, Number.HIGH), graphs=1)
def test_members_that_are_parameters(x, plain, number):
    return Names.apply(x, plain) + Names.apply(x, number)


class Several(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, values, named):
        ctx.values, ctx.named = values, named
        return x * len(values[0].name) * named["size"].numel()

    @staticmethod
    def backward(ctx, grad):
        return grad * (2 if ctx.values[1] is Number.LOW else 3) * ctx.named["size"].numel(), None, None


@differential(leaf, graphs=1)
def test_inside_of_containers(x):
    return Several.apply(x, [Number.HIGH, Number.LOW], {"size": x.shape}), Several.apply(x, (Plain.HIGH, Number.LOW), {"size": x.shape})


class Sized(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, size):
        ctx.size = size
        return x.sum() * (2 if type(size) is torch.Size else 3)

    @staticmethod
    def backward(ctx, grad):
        return grad.expand(ctx.size) * ctx.size.numel(), None


@differential(leaf, graphs=1)
def test_sizes(x):
    return Sized.apply(x, x.shape), Told.apply(x, (x.shape, 2)), Told.apply(x, torch.Size([2, 3])), Told.apply(x, tuple(x.shape))


def test_sizes_that_are_symbols():
    c = framegraft.testing.CompileCounter()
    compiled = framegraft.compile(lambda x: Sized.apply(x * 2, x.shape), backend=c, dynamic=True)
    for count in (3, 4, 5, 6):
        grads = []
        for fn in (lambda x: Sized.apply(x * 2, x.shape), compiled):
            x = torch.arange(float(count), requires_grad=True)
            out = fn(x)
            out.backward()
            grads.append((out.detach(), x.grad))
        torch.testing.assert_close(grads[1], grads[0])


class Fields(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, pair):
        ctx.pair = pair
        return x * pair.factor * pair.count

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.pair.count, None


@differential(leaf, graphs=1)
def test_named_tuples(x):
    return Told.apply(x, Pair(1, "a")), Fields.apply(x, Typed(x.detach() * 2)), Fields.apply(x, Typed(x.detach(), count=5))


FIXED = Typed(torch.tensor(2.0), 4)


@differential(lambda: (*leaf(), Pair(1, 2), Typed(torch.tensor(3.0))), graphs=1)
def test_named_tuples_from_outside(x, pair, typed):
    return Told.apply(x, pair), Fields.apply(x, typed), Fields.apply(x, FIXED)


class Extra(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, own):
        return x * own.extra

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def tuple_with_attribute():
    own = Own((1, 2))
    own.extra = 3
    return (*leaf(), own)


@differential(tuple_with_attribute)
def test_tuples_with_attributes(x, own):
    return Told.apply(x, own), Extra.apply(x, own)


@differential(leaf)
def test_other_classes_of_containers(x):
    return Told.apply(x, Own((1, 2))), Told.apply(x, collections.OrderedDict(a=1))


@framegraft.allow_in_graph
def allowed(x, value, *more):
    return x * (2 if type(value) is torch.Size or value is Number.HIGH else 3)


@differential(leaf, graphs=1)
def test_of_functions_that_are_allowed_in_graphs(x):
    return allowed(x, x.shape), allowed(x, Number.HIGH), allowed(x, Number.LOW, x.shape), allowed(x, tuple(x.shape))


class Configured(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, config, items):
        ctx.config, ctx.items = config, items
        return x * config["factor"] * items[0]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.config["factor"] * len(ctx.items), None, None


class WithConfig(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.config = {"factor": 2.0, "other": {"a": [1]}}
        self.items = [3, 4]

    def forward(self, x):
        return Configured.apply(x, self.config, self.items) + 1


def _with_gradient(fn, x, between=lambda: None):
    x = x.clone().requires_grad_()
    out = fn(x)
    between()
    out.sum().backward()
    return out.detach(), x.grad


def test_dicts_and_lists_of_a_module_are_kept_themselves():
    """Backward sees what they hold by then, as it does in eager mode."""
    models = [WithConfig(), WithConfig()]
    fns = [models[0], framegraft.compile(models[1], backend="eager", fullgraph=True)]
    for change in (
        lambda m: None,
        lambda m: m.config.update(factor=5.0),
        lambda m: m.items.append(1),
        lambda m: setattr(m, "config", {"factor": 1}),
    ):
        results = []
        for model, fn in zip(models, fns, strict=True):
            change(model)
            results.append(_with_gradient(fn, torch.ones(3)))
            results.append(_with_gradient(fn, torch.ones(3), lambda model=model: model.config.update(factor=7.0)))
        torch.testing.assert_close(results[2:], results[:2], rtol=0, atol=0)


class Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layers, seen):
        ctx.layers, ctx.seen = layers, seen
        for layer in layers:
            x = layer(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * len(ctx.layers), None, None


class Stack:
    def __init__(self):
        self.layers = [torch.sin, torch.cos]


@differential(lambda: (Stack(), torch.ones(2), torch.ones(2, requires_grad=True)), graphs=1)
def test_containers_of_others_where_nothing_goes_back(stack, x, leaf):
    """The context dies at once where no gradient is asked for."""
    seen = []
    y = Through.apply(x, stack.layers, seen)
    with torch.no_grad():
        z = Through.apply(leaf, stack.layers, seen)
    seen.append(y)
    return y + z, seen, stack.layers
