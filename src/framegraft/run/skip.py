"""Which functions are traced into, and which frames are captured."""

from __future__ import annotations

import builtins
import dataclasses
import importlib.util
import os
import reprlib
import sysconfig
import types
from typing import Any

import torch

from .. import _native


def _places(path: str) -> tuple[str, ...]:
    """A folder as code objects may name it: as it was imported, and without symbolic links."""
    return tuple(dict.fromkeys((path + os.sep, os.path.realpath(path) + os.sep)))


_STDLIB = _places(sysconfig.get_paths()["stdlib"])
_TORCH = _places(os.path.dirname(torch.__file__))
_SELF = _places(os.path.dirname(os.path.dirname(__file__)))


def _package(name: str) -> tuple[str, ...]:
    found = importlib.util.find_spec(name)
    return _places(os.path.dirname(found.origin)) if found is not None and found.origin else ()


_NUMPY = _package("numpy")
_LIMITS = tuple(root + os.path.join("_core", "getlimits.py") for root in _NUMPY)
_SYMBOLIC = _package("sympy") + _package("mpmath")  # torch requires them; their long calculations know no tensors
_POLYFILLS = tuple(root + "polyfills" + os.sep for root in _SELF)

# Parts of torch and of the standard library that are plain Python on tensors and containers: tracing into them is sound.
_INLINE = tuple(
    root + p.replace("/", os.sep)
    for p in ("nn/modules/", "nn/functional.py", "nn/_reduction.py", "nn/parallel/", "nn/utils/", "autograd/grad_mode.py",
              "autograd/anomaly_mode.py", "utils/_contextlib.py", "utils/_pytree.py", "_tensor.py", "functional.py", "nn/attention/",
              "distributions/", "_jit_internal.py", "optim/", "utils/_foreach_utils.py", "nn/init.py", "amp/", "ao/nn/", "_utils.py",
              "nn/parameter.py", "_VF.py", "__future__.py", "utils/checkpoint.py", "backends/", "overrides.py",
              "utils/_python_dispatch.py", "masked/", "signal/windows/", "_linalg_utils.py", "_lowrank.py",
              "_functorch/functional_call.py", "testing/_internal/", "utils/data/_utils/collate.py",
              "_higher_order_ops/associative_scan.py", "torch_version.py",
              "ao/quantization/fx/_decomposed.py", "_vendor/packaging/", "return_types.py", "_prims_common/", "_library/custom_ops.py",
              "distributed/algorithms/_checkpoint/checkpoint_wrapper.py", "distributed/utils.py",
              "distributed/tensor/_api.py", "distributed/tensor/_dtensor_spec.py", "distributed/tensor/parallel/")
    for root in _TORCH
)
_INLINE_STDLIB = tuple(
    root + p for root in _STDLIB for p in ("contextlib.py", "functools.py", "collections/__init__.py", "operator.py", "dataclasses.py",
                          "typing.py", "copy.py", "types.py", "enum.py", "_collections_abc.py", "abc.py", "numbers.py",
                          "statistics.py", "bisect.py", "heapq.py", "inspect.py", "string.py", "textwrap.py", "fractions.py")
)
_NN_MODULES = tuple(root + os.path.join("nn", "modules") for root in _TORCH)
_DYNAMO = tuple(os.path.join(root, "_dynamo") for root in _TORCH)
_OF_DYNAMO = ("is_compiling", "OptimizedModule.__call__", "OptimizedModule.__getattr__")  # the first asks torch.compiler.is_compiling()
_SHAPES = tuple(root + os.path.join("fx", "experimental", "symbolic_shapes.py") for root in _TORCH)
# What it says of plain numbers, which those of a trace are to the program.
_OF_SHAPES = frozenset(("_guard_or", "guard_bool", "guard_float", "guard_int", "guard_or_false", "guard_or_true", "guard_scalar",
                        "guard_size_oblivious", "has_static_value", "is_concrete_bool", "is_concrete_float", "is_concrete_int",
                        "is_nested_int", "is_symbolic", "statically_known_false", "statically_known_true", "sym_and", "sym_eq", "sym_or"))
_COMPILE_PY = tuple(root + "_compile.py" for root in _TORCH)
_OPTIM = tuple(os.path.join(root, "optim") for root in _TORCH)
_MODULE_PY = tuple(os.path.join(place, "module.py") for place in _NN_MODULES)
# Their frames run the program with stand-ins for its values, or run it twice and count on the same operations.
_COMPILERS = tuple(
    root + p.replace("/", os.sep)
    for p in ("_dynamo/convert_frame.py", "_functorch/aot_autograd.py", "_functorch/_aot_autograd/", "_inductor/compile_fx.py",
              "_export/", "export/", "fx/_symbolic_trace.py", "fx/experimental/proxy_tensor.py", "jit/_script.py", "jit/_trace.py",
              "onnx/", "utils/checkpoint.py")
    for root in _TORCH
)
TRACED: set[types.CodeType] = set()  # functions of the tracer's own and of torch that a trace may enter


def inline_reason(fn: types.FunctionType) -> tuple[str, str] | None:
    """None where the function may be traced into, else (reason id, detail)."""
    path = fn.__code__.co_filename
    if path.startswith(_DYNAMO) and fn.__dict__.get("_torchdynamo_disable"):
        inner = fn.__dict__.get("_torchdynamo_orig_callable")
        if isinstance(inner, types.FunctionType) and fn.__dict__.get("_torchdynamo_disable_recursive") is False:
            _native.set_skip(inner.__code__, True)
        return "inline_disabled", f"{fn.__qualname__} is marked with torch.compiler.disable"
    if path.startswith(_TORCH):
        traced = (path.startswith(_INLINE) or fn.__code__ in TRACED or path.startswith(_DYNAMO) and fn.__qualname__ in _OF_DYNAMO
                  or path in _SHAPES and fn.__qualname__ in _OF_SHAPES)
        return None if traced else ("untraceable_call", f"{fn.__module__}.{fn.__qualname__} of torch")
    if path.startswith(_SELF):
        traced = path.startswith(_POLYFILLS) or fn.__code__ in TRACED
        return None if traced else ("untraceable_call", f"{fn.__qualname__} of the tracer itself")
    if path.startswith(_STDLIB) and "site-packages" not in path:
        if path.startswith(_INLINE_STDLIB):
            return None
        reason = "random_call" if fn.__module__ == "random" else "untraceable_call"
        return (reason, f"{fn.__module__}.{fn.__qualname__} of the standard library")
    if path.startswith(_NUMPY) and path not in _LIMITS:
        return "numpy_call", f"{fn.__module__}.{fn.__qualname__}"
    if path.startswith(_SYMBOLIC):
        return "untraceable_call", f"{fn.__module__}.{fn.__qualname__}, symbolic mathematics"
    return None


def _guarded_repr(fn: types.FunctionType) -> Any:
    return fn


_MAKE_REPR: Any = getattr(dataclasses, "_recursive_repr", None) or reprlib.recursive_repr()
_REPRS = {_MAKE_REPR(_guarded_repr).__code__, reprlib.recursive_repr()(_guarded_repr).__code__}


def unwrapped(fn: types.FunctionType) -> tuple[Any, str]:
    """What a function only wraps, and the attribute that holds it if that is no function for good; (None, "") for other functions.

    Torch's own functions (optimizers') in wrappers that keep ``torch._dynamo`` out, at their definition or once it is imported; functions
    and methods given to ``torch.compile``; and a dataclass's ``__repr__``, whose wrapper asks for the object's address, to end where the
    object contains itself.
    """
    path = fn.__code__.co_filename
    if fn.__code__ in _REPRS:
        return _held(fn, "user_function"), ""
    if path.startswith(_DYNAMO):
        if fn.__code__.co_name == "wrapped" and isinstance(fn.__dict__.get("__wrapped__"), types.FunctionType):
            return fn.__wrapped__, ""  # of nonstrict_trace
        if fn.__qualname__.endswith(".patched_init"):  # nn.Module.__init__, which it has replaced
            return _held(fn, "init"), ""
        inner = fn.__dict__.get("_torchdynamo_orig_callable")
        if fn.__qualname__ == "wrap_dunder_call_ctx_manager.<locals>.inner":  # dont_skip_tracing and the like, which tell torch.compile
            return _held(fn, "func"), ""
        if fn.__code__.co_name == "compile_wrapper" and _is_torchs(_held(fn, "self")):
            return inner, "_torchdynamo_orig_callable"
    elif path in _COMPILE_PY:
        inner = fn.__dict__.get("__wrapped__")
    else:
        return None, ""
    if isinstance(inner, types.FunctionType) and inner.__code__.co_filename.startswith(_OPTIM):
        return inner, ""
    return None, ""


def _is_torchs(context: Any) -> bool:
    """Whether ``torch.compile`` was asked for one of torch's own backends. One of the program's is to see the graphs."""
    backend: Any = getattr(context, "callback", None)
    while hasattr(backend, "_torchdynamo_orig_backend"):
        backend = backend._torchdynamo_orig_backend
    module = getattr(getattr(backend, "compiler_fn", backend), "__module__", None) or ""
    return module == "torch" or module.startswith(("torch._dynamo.backends.", "torch._inductor."))


def _held(fn: types.FunctionType, name: str) -> Any:
    """What a function's closure has under some name."""
    return dict(zip(fn.__code__.co_freevars, (cell.cell_contents for cell in fn.__closure__ or ()), strict=True)).get(name)


_BUILTINS = vars(builtins)
_SEEN_BY_USERS = ("__build_class__", "__debug__", "__doc__", "__import__", "__loader__", "__name__", "__package__", "__spec__", "_",
                  "breakpoint", "copyright", "credits", "exit", "help", "input", "license", "open", "print", "quit")
_PRISTINE = tuple((name, value) for name, value in _BUILTINS.items() if name not in _SEEN_BY_USERS)


def builtins_replaced() -> bool:
    """Whether the program has put something else in the place of a builtin that a capture needs itself.

    Asks none of them.
    """
    for name, value in _PRISTINE:
        if _BUILTINS.get(name) is not value:
            return True
    return False


def is_library(path: str) -> bool:
    """Whether a file belongs to torch, the standard library or the tracer, not to the program."""
    return path.startswith((*_TORCH, *_SELF, "<")) or path.startswith(_STDLIB) and "site-packages" not in path


# What debuggers see nothing of while a frame is captured.
_native.set_quiet(lambda path: is_library(path) or "site-packages" in path or "dist-packages" in path)


def _computes(code: types.CodeType) -> bool:
    """Whether a function of torch.nn.modules may run in a model's forward pass; others build, print and save modules."""
    name = code.co_name
    if code.co_filename in _MODULE_PY:
        return name in ("_wrapped_call_impl", "_call_impl")
    return not (name.startswith("__") and name.endswith("__")) and name not in ("extra_repr", "reset_parameters")


def frame_skip(code: types.CodeType) -> int:
    """Which frames the evaluation hook leaves alone: torch, NumPy, the standard library, the tracer, imports.

    Returns:
        0: captured, 1: not captured, 2: nor is anything that it calls, because it is a compiler's or a tracer's own work,
        or an import, which may be loading what a capture needs.
    """
    path = code.co_filename
    if path.startswith("<frozen importlib"):
        return 2
    if path.startswith(_STDLIB + _SELF) and "site-packages" not in path:
        return 1
    if path.startswith(_TORCH):
        if path.startswith(_COMPILERS) or path.startswith(_DYNAMO) and code.co_name == "_fn":  # of torch.compiler.disable
            return 2
        return int(not path.startswith(_NN_MODULES) or not _computes(code))
    return int(path.startswith(("<frozen", "<eval_with_key>", *_NUMPY, *_SYMBOLIC)))
