"""``torch.fx.traceback.annotate``: what it says is written on the nodes, and nowhere else."""

import pytest
import torch
from torch.fx import traceback

import framegraft

from .differential import differential

if not hasattr(traceback, "annotate_fn"):
    pytest.skip("this torch has no annotations", allow_module_level=True)


@traceback.annotate_fn({"stage": 1})
def staged(x):
    return x * 3


@differential(graphs=1)
def test_annotated(x):
    with traceback.annotate({"a": 1}):
        y = x + 1
        with traceback.annotate({"b": [2]}):
            y = y * 2
    with traceback.preserve_node_meta():
        return staged(y), "custom" in traceback.current_meta


@differential()
def test_break_inside(x):
    with traceback.annotate({"a": 1}):
        y = x + 1
        print(end="")
        y = y + len(traceback.current_meta.get("custom", {}))
    return y, "custom" in traceback.current_meta


class Layer(torch.nn.Module):
    def forward(self, x):
        with traceback.annotate({"layer": "any"}):
            return x.sin() + 1


def test_nodes():
    seen = []

    def backend(gm, inputs):
        seen.extend(node.meta.get("custom") for node in gm.graph.nodes if node.op not in ("placeholder", "output"))
        return gm.forward

    def fn(x):
        with traceback.annotate({"a": 1}):
            x = x + 1
            with traceback.annotate({"b": 2}):
                x = x * 2
            x = x - 1
        return staged(x).cos()

    framegraft.compile(fn, backend=backend, fullgraph=True)(torch.ones(2))
    assert seen == [{"a": 1}, {"a": 1, "b": 2}, {"a": 1}, {"stage": 1}, None]
    seen.clear()
    framegraft.compile(torch.nn.Sequential(*[Layer() for _ in range(4)]), backend=backend, fullgraph=True)(torch.ones(2))
    assert seen == [{"layer": "any"}] * 8
