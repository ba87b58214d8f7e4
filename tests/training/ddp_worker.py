"""One of the processes that test_distributed.py starts with torchrun: trains with DistributedDataParallel and prints its losses.

Arguments: a backend, or "none" for eager mode; "split" to have graphs end where buckets of gradients do.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import framegraft


class Net(nn.Module):
    def __init__(self, breaking):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)
        self.breaking = breaking

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x)) + x
        if self.breaking:
            print(end="")
        return self.head(self.norm(x))


def compiled_parts(loss):
    """Nodes of the autograd graph that are compiled graphs."""
    seen, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(following for following, _ in node.next_functions)
    return sum("CompiledFunction" in type(node).__name__ for node in seen)


def main() -> None:
    framegraft.config.split_ddp_graphs = "split" in sys.argv
    parts = []
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    losses = []
    for breaking in (False, True):
        torch.manual_seed(0)
        # Small buckets: several reductions overlap with the backward pass.
        model = DistributedDataParallel(Net(breaking), bucket_cap_mb=0.0005)
        run = model if sys.argv[1] == "none" else framegraft.compile(model, backend=sys.argv[1])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        torch.manual_seed(1 + rank)
        for _ in range(5):
            x, y = torch.randn(6, 8), torch.randint(0, 3, (6,))
            optimizer.zero_grad()
            loss = F.cross_entropy(run(x), y)
            parts.append(compiled_parts(loss))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        checksum = sum(p.detach().double().sum() for p in model.parameters())
        both = [torch.zeros_like(checksum) for _ in range(2)]
        dist.all_gather(both, checksum)
        assert both[0] == both[1], "the replicas differ"
        losses.append(checksum.item())
    graphs = framegraft.stats()["graphs"]
    print("RESULT " + json.dumps({"rank": rank, "losses": losses, "graphs": graphs, "parts": parts}), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # gloo's threads, destroyed by the interpreter's exit, have aborted the process ("terminate called ...")


if __name__ == "__main__":
    main()
