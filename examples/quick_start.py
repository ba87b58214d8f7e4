"""Quick start: capture a function, look at what was captured, see it reused and compiled again."""

import torch

import framegraft
from framegraft.testing import CompileCounter

counter = CompileCounter()


@framegraft.compile(backend=counter)
def gelu_tanh(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    inner = 0.79788456 * (x + 0.044715 * x**3)
    return scale * 0.5 * x * (1 + torch.tanh(inner))


def main() -> None:
    x = torch.randn(8, 16)
    expected = framegraft.innermost_fn(gelu_tanh)(x)
    assert torch.equal(gelu_tanh(x), expected)
    print(f"captured {counter.frame_count} graph of {counter.op_count} operations")

    gelu_tanh(torch.randn(8, 16))
    print(f"same shape again: {counter.frame_count} graph, nothing was compiled")

    gelu_tanh(torch.randn(4, 16))
    print(f"another shape: {counter.frame_count} graphs; back to the first shape hits the first graph")
    gelu_tanh(x)
    assert counter.frame_count == 2

    # The whole program can be captured, too, without touching its functions.
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).eval()
    before = framegraft.stats()["graphs"]
    with framegraft.optimize("eager"):
        inside = model(x)
    assert torch.equal(inside, model(x))
    print(f"{framegraft.stats()['graphs'] - before} graph(s) captured inside of the with block")

    # fullgraph=True turns a graph break into an error that says why, where, and what to do.
    @framegraft.compile(backend="eager", fullgraph=True)
    def branches(y: torch.Tensor) -> torch.Tensor:
        if y.sum() > 0:
            return y + 1
        return y - 1

    try:
        branches(x)
    except framegraft.exc.Unsupported as error:
        print(f"\nframegraft.exc.Unsupported: {error}")
    else:
        raise AssertionError("a branch on a tensor cannot be in one graph")


if __name__ == "__main__":
    main()
