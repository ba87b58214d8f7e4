"""What autograd saves for the backward pass. It saves a tensor itself, and finds what has become of it: ``x.data = y`` is no write."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import torch

_NODES = 1000  # of one operation


def among(fakes: Iterable[Any], known: Collection[int]) -> list[Any]:
    """Those of ``fakes`` whose ids are ``known``."""
    return [fake for fake in fakes if id(fake) in known]


def keeps(result: Any, fakes: Collection[Any], operands: Iterable[Any]) -> bool:
    """Whether autograd may have saved one of ``fakes`` when it recorded the operation that gave ``result``.

    ``operands``: the trackers of all tensors that it was given, the histories of which are older.
    """
    if not fakes or getattr(result, "grad_fn", None) is None and not isinstance(result, (list, tuple)):
        return False
    older = [t.fake.grad_fn for t in operands if t.fake.grad_fn is not None]
    todo = [made.grad_fn for made in tensors(result) if made.grad_fn is not None]
    seen: list[Any] = []
    while todo:
        node = todo.pop()
        if any(node is other for other in older) or any(node is other for other in seen):
            continue
        seen.append(node)
        if len(seen) > _NODES or _keeps(node, fakes):
            return True
        todo += [following for following, _ in node.next_functions if following is not None]
    return False


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an operation's result."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def _keeps(node: Any, fakes: Collection[Any]) -> bool:
    kind = type(node)
    if kind.__name__ == "AccumulateGrad":
        return False
    if not kind.__name__.endswith(_OF_TORCH):
        return True
    try:
        saved = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
    except RuntimeError:
        return True
    return any(one is fake for one in tensors(saved) for fake in fakes)


_OF_TORCH = tuple(f"Backward{number}" for number in range(10))  # nodes that tell; those of autograd.Functions have no number
