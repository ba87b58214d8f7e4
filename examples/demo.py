"""What Framegraft does, in one screen or two: graphs, guards, breaks; then a whole model."""

import dis
import random
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

import framegraft
from framegraft.testing import CompileCounterWithBackend


def title(text: str) -> None:
    print(f"\n=== {text} {'=' * max(0, 100 - len(text))}\n", flush=True)


graphs: list[torch.fx.GraphModule] = []


def my_compiler(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    print("my_compiler() called with FX graph:")
    gm.graph.print_tabular()
    print()
    graphs.append(gm)
    return gm.forward  # return a python callable


@framegraft.optimize(my_compiler)
def toy_example(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def show_toy_example() -> None:
    eager = framegraft.innermost_fn(toy_example)

    title("toy_example: the branch on b.sum() breaks the graph, so there are three")
    torch.manual_seed(0)
    random.seed(0)
    for _ in range(100):
        a, b = torch.randn(10), torch.randn(10)
        assert torch.equal(toy_example(a, b), eager(a, b))
    assert len(graphs) == 3
    print(f"100 calls, every result equal to eager mode bit for bit, {len(graphs)} graphs compiled")

    title("why it broke")
    for reason in framegraft.break_reasons():
        print(reason)

    title("guards: what must hold for the graph to be used again")
    for entry in framegraft._debug_get_cache_entry_list(eager):
        for part in getattr(entry.check_fn, "verbose_code_parts", entry.check_fn.code_parts):
            print("  ", part)

    title("the bytecode that runs instead")
    for entry in framegraft._debug_get_cache_entry_list(eager):
        dis.dis(entry.code)


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        heads = (batch, length, self.heads, width // self.heads)
        q, k, v = (t.view(heads).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, vocabulary: int = 100, width: int = 64, heads: int = 4, layers: int = 4) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(128, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def show_model() -> None:
    title("a transformer encoder, written in plain torch")
    torch.manual_seed(0)
    model = Encoder().eval()
    counter = CompileCounterWithBackend("eager")
    captured = framegraft.compile(model, backend=counter)
    ids = torch.randint(0, 100, (2, 24))
    with torch.no_grad():
        expected = model(ids)
        start = time.perf_counter()
        result = captured(ids)
        took = time.perf_counter() - start
        assert torch.equal(result, expected)
        assert torch.equal(captured(ids), expected)
        assert counter.frame_count == 1, f"one graph is expected; {framegraft.break_reasons()}"
    print(f"{counter.frame_count} graph(s), {counter.op_count} operations, {took * 1e3:.0f} ms, equal to eager mode")

    with torch.no_grad():
        model.blocks[1].mlp[1] = nn.SiLU()
        assert torch.equal(captured(ids), model(ids))
        assert counter.frame_count == 2, "the guards did not see the change"
    print(f"after replacing an activation: {counter.frame_count} graphs, and the result is still eager's")

    def with_a_break(ids: torch.Tensor) -> torch.Tensor:
        hidden = model(ids)
        print("the largest value is", hidden.max().item())
        return hidden.softmax(-1)

    title("explain: the same model in a function that prints a value")
    with torch.no_grad():
        explained = framegraft.explain(with_a_break)(ids)
    print(f"{explained.graph_count} graphs, {explained.graph_break_count} breaks")
    for reason in explained.break_reasons:
        print(reason)


if __name__ == "__main__":
    show_toy_example()
    show_model()
