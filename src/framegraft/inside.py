"""What a captured program sees of this package: its functions and compiled modules, met inside of a trace."""

from __future__ import annotations

import inspect
import types
from typing import Any

import torch
from torch.autograd import graph as autograd_graph
from torch.fx import _symbolic_trace, traceback
from torch.fx.graph_module import GraphModule, _WrappedCall
from torch.utils.hooks import RemovableHandle

from .api import OptimizedModule, _compile_object, compile, graph_break, is_compiling  # noqa: A004
from .errors import GraphBreak
from .interp.state import realize
from .model.dispatch import HANDLERS, handles
from .model.value import NONE, ConstantVariable, FunctionVariable, MethodVariable
from .run import skip
from .run.convert import convert, raising
from .semantics import calls, instances
from .semantics.wrapping import need_constant_deep, wrap_constant
from .tensor.arguments import call_in_graph


def _inline_reason(fn: types.FunctionType) -> tuple[str, str] | None:
    disabled = fn.__dict__.get("_framegraft_disabled")
    if disabled:
        why = "" if disabled is True else f": {disabled}"
        return ("inline_disabled", f"{fn.__qualname__} is marked with framegraft.disable{why}")
    return skip.inline_reason(fn)


def _module_inside(tx: Any, compiled: Any) -> Any:
    return realize(instances.instance_dict_attr(tx, compiled, "_orig_mod"), tx.state)


def evaluated(fn: Any, args: list, kwargs: dict) -> Any:
    """What ``fn`` gives for these arguments, as a constant of the trace."""
    values = [need_constant_deep(a) for a in args]
    named = {k: need_constant_deep(v) for k, v in kwargs.items()}
    try:
        value = fn(*values, **named)
    except Exception as error:
        raise GraphBreak("raised_exception", f"{getattr(fn, '__name__', fn)} raised {type(error).__name__}") from None
    return wrap_constant(value)


@handles(graph_break)
def _handle_graph_break(tx: Any, args: list, kwargs: dict) -> Any:
    message = args[0] if args else kwargs.get("msg", NONE)
    text = f": {message.value}" if isinstance(message, ConstantVariable) and message.value else ""
    raise GraphBreak("user_graph_break", f"framegraft.graph_break(){text}")


@handles(_compile_object)
def _as_it_is(tx: Any, args: list, kwargs: dict) -> Any:
    """``compiled_module.forward``: inside of a capture everything is captured."""
    return args[1]


calls.SKIP.append(_inline_reason)
calls.UNWRAP.append(skip.unwrapped)
calls.STANDS_FOR[OptimizedModule] = _module_inside
_OWN = vars(OptimizedModule)
# Methods of the original module have one code.
skip.TRACED.update(f.__code__ for f in (OptimizedModule.__getattr__, OptimizedModule.__setattr__, OptimizedModule.train))
skip.TRACED.update(_OWN[name].fget.__code__ for name in ("training", "forward", "__class__"))
# How a module that torch.fx has made calls its forward(), which is code of the program like any other.
skip.TRACED.update(c for c in GraphModule.recompile.__code__.co_consts if isinstance(c, types.CodeType) and c.co_name == "call_wrapped")
skip.TRACED.update((_WrappedCall.__call__.__code__, torch.autograd.Function.__init__.__code__,
                    _symbolic_trace.ProxyableClassMeta.__call__.__code__))
skip.TRACED.update(vars(torch)[name].__code__ for name in (
    "sym_int", "sym_float", "sym_max", "sym_min", "sym_sum", "sym_not", "sym_ite", "sym_sqrt", "__all_and_float_types",
    "get_float32_matmul_precision") if name in vars(torch))  # not every torch has all of these
skip.TRACED.update(vars(torch.cuda.device)[name].__code__ for name in ("__init__", "__enter__", "__exit__"))
skip.TRACED.add(inspect.unwrap(autograd_graph.disable_saved_tensors_hooks).__code__)
skip.TRACED.update(vars(_symbolic_trace)[name].__code__ for name in ("is_fx_tracing", "is_fx_symbolic_tracing")
                   if name in vars(_symbolic_trace))
skip.TRACED.update((vars(torch.jit)["_unwrap_optional"].__code__, torch.jit.script_if_tracing(_as_it_is).__code__))
skip.TRACED.update(vars(RemovableHandle)[name].__code__ for name in ("remove", "__enter__", "__exit__"))
if hasattr(traceback, "annotate_fn"):
    skip.TRACED.update(c for d in traceback.annotate_fn.__code__.co_consts if isinstance(d, types.CodeType)
                       for c in d.co_consts if isinstance(c, types.CodeType) and c.co_name == "wrapper")


class _CompiledVariable(MethodVariable):
    """What ``torch.compile(fn)`` gives in a trace: a call of it is one of ``fn``. It stays in the trace."""

    __slots__ = ()

    def python_type(self) -> type:
        return types.FunctionType

    def with_bound(self, args: list, kwargs: dict) -> tuple[list, dict]:
        return args, kwargs


@handles(torch.compile, compile)
def _compile(tx: Any, args: list, kwargs: dict) -> Any:
    """Functions alone, by backends that are torch's: one of the program's would see their graphs."""
    if len(args) != 1:
        raise GraphBreak("untraceable_call", "a decorator that compiles, made inside of a capture")
    fn = realize(args[0], tx.state)
    options = {name: need_constant_deep(realize(value, tx.state)) for name, value in kwargs.items()}
    known = options.pop("backend", "inductor") in ("eager", "aot_eager", "inductor") and options.pop("dynamic", None) in (None, True, False)
    if not known or any(value not in (None, False) for value in options.values()):
        raise GraphBreak("untraceable_call", "a function compiled inside of a capture, with options")
    if not isinstance(fn, (FunctionVariable, MethodVariable)) and type(getattr(fn, "value", None)) is not types.FunctionType:
        raise GraphBreak("untraceable_call", "something other than a function compiled inside of a capture")
    return _CompiledVariable(fn, NONE)


HANDLERS[id(is_compiling)] = lambda tx, args, kwargs: wrap_constant(True)

__all__ = ["call_in_graph", "convert", "evaluated", "raising"]
