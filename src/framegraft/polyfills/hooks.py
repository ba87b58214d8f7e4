"""What ``torch.utils.hooks.RemovableHandle`` does when it is made, with a number that the trace takes."""

from __future__ import annotations

import weakref
from typing import Any

from torch.utils.hooks import RemovableHandle


def take_number() -> int:
    number = RemovableHandle.next_id
    RemovableHandle.next_id += 1
    return number


def init(self: Any, hooks_dict: Any, *, extra_dict: Any = None) -> None:
    self.hooks_dict_ref = weakref.ref(hooks_dict)
    self.id = take_number()
    self.extra_dict_ref = ()
    if isinstance(extra_dict, dict):
        self.extra_dict_ref = (weakref.ref(extra_dict),)
    elif isinstance(extra_dict, list):
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra_dict)
