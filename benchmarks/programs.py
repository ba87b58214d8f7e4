"""The programs that are measured: small functions, and models of real shape in tiny widths. Nothing is downloaded."""

from __future__ import annotations

import importlib.util
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._pytree import tree_map

Program = tuple[Any, tuple[Any, ...], dict[str, Any]]


def fresh(fn: Any) -> Any:
    """The same function with a code object of its own: captures must not share a cache."""
    return types.FunctionType(fn.__code__.replace(), fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


def toy(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    return x * b


def toy_with_break(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def _scaled(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return toy_with_break(a + 1, b) * 2


def _shifted(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _scaled(a * 2, b) + a


def deep_break(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The break of ``toy_with_break``, three calls further down."""
    return _shifted(a.abs(), b) - b


def hundred(options: dict[str, Any], items: list[Any], x: torch.Tensor) -> torch.Tensor:
    for i in range(50):
        x = x + options[f"k{i}"] * items[i]
    return x


def add_scalar(x: torch.Tensor, n: int) -> torch.Tensor:
    return x + n


def _forward(self: Any, x: torch.Tensor) -> torch.Tensor:
    for layer in self.layers:
        x = layer(x)
    return x


def stack(make: Callable[[], nn.Module], count: int) -> nn.Module:
    """``count`` layers in a module whose class, and forward's code, nobody else has."""
    model = type("Stack", (nn.Module,), {"forward": fresh(_forward)})()
    model.layers = nn.ModuleList(make() for _ in range(count))
    return model.eval()


class MLPBlock(nn.Module):
    """Five operations."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Block(nn.Module):
    """Attention and a gated MLP: 30 operations."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm1(x)
        q, k, v = (self.split(layer(h)) for layer in (self.q, self.k, self.v))
        scores = torch.softmax(q @ k.transpose(-1, -2) * (x.shape[-1] // self.heads) ** -0.5, -1)
        x = x + self.o((scores @ v).transpose(1, 2).reshape(x.shape))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Conv(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.relu(self.norm(self.conv(x)))


class Shape:
    def __init__(self, *sides: int) -> None:
        self.sides = sides

    def area(self) -> float:
        raise NotImplementedError


class Box(Shape):
    @property
    def longest(self) -> int:
        return max(self.sides)

    def area(self) -> float:
        total = 1
        for side in self.sides:
            total *= side
        return float(total)


class Cube(Box):
    def __init__(self, side: int) -> None:
        super().__init__(side, side, side)


def objects(x: torch.Tensor) -> torch.Tensor:
    """Nearly all of it is plain Python: classes, dictionaries, comprehensions, string formatting."""
    seen: dict[str, list[float]] = {}
    for i in range(60):
        shape = Cube(i % 7 + 1) if i % 3 else Box(i % 5 + 1, i % 4 + 1)
        seen.setdefault(f"{type(shape).__name__}-{shape.longest}", []).append(shape.area())
    for _name, areas in sorted(seen.items(), key=lambda pair: (len(pair[1]), pair[0])):
        x = x + sum(areas) / len(areas)
    return x


def adds(count: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def many(x: torch.Tensor) -> torch.Tensor:
        for _ in range(count):
            x = torch.add(x, 1)
        return x

    return fresh(many)


def mlp(layers: int = 64) -> Program:
    return stack(lambda: nn.Linear(8, 8), layers), (torch.randn(1, 8),), {}


def wrapped(layers: int = 64) -> Program:
    """Weights that hold two tensors each, as quantized ones do."""
    from torch.testing._internal.two_tensor import TwoTensor

    model, inputs, named = mlp(layers)
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.weight = nn.Parameter(TwoTensor(layer.weight.detach().clone(), layer.weight.detach().clone()))
    return model, inputs, named


def mlp_transformer(blocks: int = 24) -> Program:
    return stack(MLPBlock, blocks), (torch.randn(4, 16, 32),), {}


def transformer(blocks: int = 12) -> Program:
    return stack(Block, blocks), (torch.randn(2, 16, 32),), {}


def conv_net(blocks: int = 20) -> Program:
    return stack(Conv, blocks), (torch.randn(2, 8, 8, 8),), {}


def bert(layers: int = 12) -> Program:
    import transformers

    config = transformers.BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64,
    )
    return transformers.BertModel(config).eval(), (), {"input_ids": torch.randint(0, 100, (2, 16))}


def llama(layers: int = 32) -> Program:
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=64, max_position_embeddings=64, use_cache=False,
    )
    return transformers.LlamaModel(config).eval(), (), {"input_ids": torch.randint(0, 100, (2, 16))}


def placed(make: Callable[[], Program], device: str) -> Callable[[], Program]:
    """The same program, with its tensors on ``device``."""

    def move(value: Any) -> Any:
        return value.to(device) if isinstance(value, (nn.Module, torch.Tensor)) else value

    return lambda: tree_map(move, make())


HAVE_TRANSFORMERS = importlib.util.find_spec("transformers") is not None


def known() -> dict[str, Callable[[], Program]]:
    """What captures are measured on: a name, and what makes the program anew."""
    found: dict[str, Callable[[], Program]] = {
        "MLP-transformer, 24 blocks": mlp_transformer,
        "1,000 torch.add": lambda: (adds(1000), (torch.randn(4),), {}),
        "3,000 torch.add": lambda: (adds(3000), (torch.randn(4),), {}),
        "classes in plain Python": lambda: (fresh(objects), (torch.randn(4),), {}),
        "1 layer": lambda: transformer(1),
        "32 layers": lambda: transformer(32),
    }
    if HAVE_TRANSFORMERS:
        found["BERT, 12 layers"] = bert
        found["Llama, 32 layers"] = llama
    return found
