"""Functions of ``torch.utils._pytree`` without the decorators that they make at each call."""

from __future__ import annotations

from typing import Any

from torch.utils import _pytree


def tree_map_only(types: Any, func: Any, tree: Any, is_leaf: Any = None) -> Any:
    if isinstance(types, (type, tuple)):
        return _pytree.tree_map(lambda leaf: func(leaf) if isinstance(leaf, types) else leaf, tree, is_leaf=is_leaf)
    return _pytree.tree_map(lambda leaf: func(leaf) if types(leaf) else leaf, tree, is_leaf=is_leaf)
