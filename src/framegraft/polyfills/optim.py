"""Functions of ``torch.optim`` as the tracer sees them."""

from __future__ import annotations

from typing import Any

import torch


def use_grad(func: Any, *args: Any, **kwargs: Any) -> Any:
    """``step`` in its decorator, without the graph breaks that stand there for another tracer."""
    before = torch.is_grad_enabled()
    try:
        torch.set_grad_enabled(args[0].defaults["differentiable"])
        return func(*args, **kwargs)
    finally:
        torch.set_grad_enabled(before)
