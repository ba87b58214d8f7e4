"""A compiler of your own: it gets an fx graph and example inputs, and returns something callable."""

import operator
from collections.abc import Callable
from typing import Any

import torch

import framegraft


@framegraft.register_backend(name="fuse_mul_add")
def fuse_mul_add(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """Replace ``a * b + c`` on tensors of one shape by ``torch.addcmul(c, a, b)``."""
    graph = gm.graph
    fused = 0
    for node in list(graph.nodes):
        if node.target not in (operator.add, torch.add) or len(node.args) != 2:
            continue
        product, addend = node.args
        if not all(isinstance(arg, torch.fx.Node) for arg in (product, addend)):
            continue
        if product.target not in (operator.mul, torch.mul) or len(product.users) != 1:
            continue
        if not all(isinstance(arg, torch.fx.Node) for arg in product.args):
            continue
        with graph.inserting_before(node):
            replacement = graph.call_function(torch.addcmul, (addend, *product.args))
        node.replace_all_uses_with(replacement)
        graph.erase_node(node)
        graph.erase_node(product)
        fused += 1
    gm.recompile()
    print(f"fused {fused} multiplication(s) and addition(s); the graph is now\n{gm.code}")
    return gm.forward


@framegraft.compile(backend="fuse_mul_add")
def polynomial(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return (a * x + b) * x + c


def main() -> None:
    inputs = [torch.randn(16) for _ in range(4)]
    result = polynomial(*inputs)
    torch.testing.assert_close(result, framegraft.innermost_fn(polynomial)(*inputs))
    print("backends by name:", ", ".join(framegraft.list_backends()))


if __name__ == "__main__":
    main()
