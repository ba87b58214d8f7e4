"""A graph whose code is written in less time, by torch's own writer."""

from __future__ import annotations

from typing import Any

import torch.fx
from torch.fx.graph import PythonCode, _illegal_names, _Namespace


class CapturedGraph(torch.fx.Graph):
    """``torch.fx.Graph.python_code`` asks a new namespace for a node's name wherever that is printed, and tells every node so before and
    after: a third of the time. Where the names are fit to print, it is enough that globals get other ones."""

    def python_code(self, root_module: str, **how: Any) -> PythonCode:
        names = {node.name for node in self.nodes}
        fit = len(names) == len(self.nodes) and names.isdisjoint(_illegal_names) and all(map(str.isidentifier, names))
        if any(how.values()) or not fit:
            return super().python_code(root_module, **how)
        namespace = _Namespace()
        namespace._used_names |= names
        return self._python_code(root_module, namespace)
