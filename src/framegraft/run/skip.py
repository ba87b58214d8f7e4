"""Which functions are traced into, and which frames are captured."""

from __future__ import annotations

import os
import sysconfig
import types

import torch


def _places(path: str) -> tuple[str, ...]:
    """A folder as code objects may name it: as it was imported, and without symbolic links."""
    return tuple(dict.fromkeys((path + os.sep, os.path.realpath(path) + os.sep)))


_STDLIB = _places(sysconfig.get_paths()["stdlib"])
_TORCH = _places(os.path.dirname(torch.__file__))
_SELF = _places(os.path.dirname(os.path.dirname(__file__)))

# Parts of torch and of the standard library that are plain Python on tensors and containers: tracing into them is sound.
_INLINE = tuple(
    root + p.replace("/", os.sep)
    for p in ("nn/modules/", "nn/functional.py", "nn/parallel/", "nn/utils/", "autograd/grad_mode.py", "utils/_contextlib.py",
              "utils/_pytree.py", "_tensor.py", "functional.py", "nn/attention/", "distributions/", "_jit_internal.py",
              "optim/", "nn/init.py", "amp/", "ao/nn/", "_utils.py", "utils/checkpoint.py_", "nn/parameter.py", "_VF.py", "__future__.py",
               "backends/", "overrides.py", "utils/_python_dispatch.py", "masked/")
    for root in _TORCH
)
_INLINE_STDLIB = tuple(
    root + p for root in _STDLIB for p in ("contextlib.py", "functools.py", "collections/__init__.py", "operator.py", "dataclasses.py",
                          "typing.py", "copy.py", "types.py", "enum.py", "_collections_abc.py", "abc.py", "numbers.py",
                          "statistics.py", "bisect.py", "heapq.py", "inspect.py", "string.py", "textwrap.py", "fractions.py")
)
_NN_MODULES = tuple(root + os.path.join("nn", "modules") for root in _TORCH)
_DISABLED: set[types.CodeType] = set()


def disable_code(code: types.CodeType) -> None:
    _DISABLED.add(code)


def inline_reason(fn: types.FunctionType) -> tuple[str, str] | None:
    """None where the function may be traced into, else (reason id, detail)."""
    code = fn.__code__
    if code in _DISABLED:
        return ("inline_disabled", f"{fn.__qualname__} is marked with framegraft.disable")
    path = code.co_filename
    if path.startswith(_TORCH):
        return None if path.startswith(_INLINE) else ("untraceable_call", f"{fn.__module__}.{fn.__qualname__} of torch")
    if path.startswith(_SELF):
        return ("untraceable_call", f"{fn.__qualname__} of the tracer itself")
    if path.startswith(_STDLIB) and "site-packages" not in path:
        if path.startswith(_INLINE_STDLIB):
            return None
        return ("untraceable_call", f"{fn.__module__}.{fn.__qualname__} of the standard library")
    return None


def is_library(path: str) -> bool:
    """Whether a file belongs to torch, the standard library or the tracer, not to the program."""
    return path.startswith((*_TORCH, *_SELF, "<")) or path.startswith(_STDLIB) and "site-packages" not in path


def frame_is_skipped(code: types.CodeType) -> bool:
    """Frames that the evaluation hook leaves alone: torch, the standard library, the tracer, modules and class bodies."""
    path = code.co_filename
    if path.startswith(_STDLIB + _SELF) and "site-packages" not in path:
        return True
    if path.startswith(_TORCH):
        return not path.startswith(_NN_MODULES)
    return path.startswith(("<frozen", "<eval_with_key>")) or code in _DISABLED
