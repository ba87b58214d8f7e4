"""torch.nn.Module attribute access and torch's mode switches, where tracing torch's own Python would be slow or wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch import _jit_internal

from ..errors import GraphBreak, Restart
from ..interp.frame import origin_of
from ..interp.state import need_constant, realize
from ..model.dispatch import HANDLERS, handles
from ..model.value import (
    MISSING,
    NONE,
    ConstantVariable,
    ObjectVariable,
    TensorVariable,
    VariableTracker,
    constant,
)
from ..native.calibrate import AUTOCAST_DEVICES
from ..semantics import attributes, calls, class_checks, constructors, folding, hashed, instances, lookup, storing, truth
from ..semantics.wrapping import wrap_pinned
from .modes import guard_answer

_MODULES: Any = torch.nn.modules.module
_TABLES = ("_parameters", "_buffers", "_modules")
_REGISTERED = (torch.nn.Parameter, torch.nn.Buffer)  # other tensors may carry their marks


def module_getattr(tx: Any, obj: ObjectVariable, name: str) -> VariableTracker | None:
    """torch.nn.Module.__getattr__: the three tables, in order."""
    for table in _TABLES:
        found = instances.module_table_entry(tx, obj, table, name)
        if found is not None:
            return found
    return None


def module_setattr(tx: Any, obj: ObjectVariable, name: str, value: VariableTracker) -> bool:
    """torch.nn.Module.__setattr__ for plain values and for tensors in the place of buffers. False where it is to be traced itself."""
    if not all(instances.has_plain_table(tx, obj, table) for table in _TABLES):
        return False
    value = realize(value, tx.state)
    if isinstance(value, TensorVariable) and class_checks.is_instance(tx, value, _REGISTERED):
        return False
    if isinstance(value, ObjectVariable) and issubclass(value.cls, torch.nn.Module):
        return False
    for table in ("_parameters", "_modules"):
        if instances.module_table_entry(tx, obj, table, name) is not None:
            return False
    if instances.module_table_entry(tx, obj, "_buffers", name) is not None:
        if not isinstance(value, TensorVariable) and not (isinstance(value, ConstantVariable) and value.value is None):
            raise GraphBreak("unsupported_mutation", f"something other than a tensor set as the buffer {name}")
        if lookup.mro_lookup(tx, obj.cls, "register_buffer") is not torch.nn.Module.register_buffer:
            raise GraphBreak("unsupported_mutation", f"{obj.cls.__name__}.register_buffer")
        hooks = realize(attributes.get_attr(tx, wrap_pinned(tx, _MODULES), "_global_buffer_registration_hooks"), tx.state)
        if truth.truth(tx, hooks):
            return False
        buffers = realize(instances.instance_dict_attr(tx, obj, "_buffers"), tx.state)
        hashed.dict_set(tx, buffers, constant(name), value)
        return True
    storing.generic_set_attr(tx, obj, name, value)
    return True


instances.MODULE_GETATTR[torch.nn.Module.__getattr__] = module_getattr
storing.MODULE_SETATTR[torch.nn.Module.__setattr__] = module_setattr


def _answers(value: Any, *functions: Any) -> None:
    for fn in functions:
        handles(fn)(lambda tx, args, kwargs: constant(value))


_answers(False, vars(torch.jit)["is_scripting"], _jit_internal.is_scripting, vars(torch.jit)["is_tracing"], torch._C._is_tracing)
_answers(None, torch._C._get_tracing_state)
_answers(True, torch.compiler.is_dynamo_compiling)
_answers(False, torch.compiler.is_exporting)


@handles(torch.compiler.is_compiling)
def is_compiling(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """Yes; but not for torch.nn.Module._call_impl with hooks that run after an error, too, which it else leaves out."""
    return constant(not (origin_of(tx.code) is _CALL_IMPL and _always_calls(tx)))


_CALL_IMPL = torch.nn.Module._call_impl.__code__


def _always_calls(tx: Any) -> bool:
    """Whether ``always_call=True`` hooks are there: of the module that the frame calls, or of all modules."""
    module = realize(constructors.first_argument(tx), tx.state)
    of_all = attributes.get_attr(tx, wrap_pinned(tx, _MODULES), "_global_forward_hooks_always_called")
    own = instances.instance_dict_attr(tx, module, "_forward_hooks_always_called") if isinstance(module, ObjectVariable) else MISSING
    return any(hooks is not MISSING and truth.truth(tx, realize(hooks, tx.state)) for hooks in (of_all, own))


def answer_late() -> None:
    """Handlers for functions of modules that torch does not load by itself, once somebody has."""
    if "onnx" in torch.__dict__ and id(torch.onnx.is_in_onnx_export) not in HANDLERS:
        _answers(False, torch.onnx.is_in_onnx_export)


@handles(torch.__getattr__)
def _lazy_module(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """A part of torch that is loaded when it is first asked for. Loading it here makes it a plain attribute."""
    name = need_constant(args[0], "the name of an attribute")
    if name not in torch.__dict__["_lazy_modules"]:
        raise GraphBreak("unsupported_attribute", f"torch.{name}")
    getattr(torch, name)
    raise Restart(f"torch.{name} was loaded")


def _state_query(*functions: Any) -> None:
    """Functions of global state that every entry is guarded on."""
    for fn in functions:

        def answer(tx: Any, args: list, kwargs: dict, fn: Any = fn) -> VariableTracker:
            if kwargs or not all(isinstance(a, ConstantVariable) for a in args):
                raise GraphBreak("untraceable_call", fn.__name__)
            return folding.fold(fn, args)

        handles(fn)(answer)


_state_query(torch.is_grad_enabled, torch.is_inference_mode_enabled, torch.get_default_dtype, torch.is_autocast_enabled,
             torch.is_autocast_cpu_enabled, torch.are_deterministic_algorithms_enabled, torch.is_autocast_cache_enabled,
             torch.get_autocast_cpu_dtype, torch.get_autocast_gpu_dtype, torch.is_deterministic_algorithms_warn_only_enabled,
             torch.amp.is_autocast_available, torch.cuda.is_available,
             torch.promote_types, torch.can_cast,
             # of the machine, and of how torch was built
             torch.cuda.device_count, torch.xpu.is_available, torch.accelerator.is_available, torch.backends.mps.is_available,
             torch.mps.device_count, torch.distributed.is_available,
             *(ask for name, ask in vars(torch.cpu).items() if name.startswith("_is_") and name.endswith("_supported")))


def _asked_anew(fn: Any) -> None:
    """A function of global state that an entry is guarded on if it has asked."""

    @handles(fn)
    def answer(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if args or kwargs:
            raise GraphBreak("untraceable_call", f"{fn.__name__} with arguments")
        try:
            value = fn()
        except Exception as error:
            raise GraphBreak("raised_exception", f"{fn.__name__}() raised {type(error).__name__}") from None
        guard_answer(tx, fn, value)
        return constant(value)


for _asked in (torch.autograd._is_checkpoint_valid, torch.cuda.is_initialized, torch.get_num_threads,
               torch.get_num_interop_threads, torch.is_warn_always_enabled):
    _asked_anew(_asked)
if torch.distributed.is_available():
    _state_query(torch.distributed.is_nccl_available, torch.distributed.is_gloo_available)
    for _asked in (torch.distributed.is_initialized, torch.distributed.is_torchelastic_launched, torch.distributed.get_rank,
                   torch.distributed.get_world_size):
        _asked_anew(_asked)


@handles(torch._C._are_functorch_transforms_active)
def transforms_active(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """Of the frame; what a transform of its own calls is traced before it runs."""
    if args or kwargs or tx.state.graph.body is not None:
        raise GraphBreak("untraceable_call", "_are_functorch_transforms_active() inside of a function given to torch")
    value = torch._C._are_functorch_transforms_active()
    guard_answer(tx, torch._C._are_functorch_transforms_active, value)
    return constant(value)


@handles(torch.get_autocast_dtype)
def autocast_dtype(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    device = args[0] if len(args) == 1 and not kwargs else None
    if not isinstance(device, ConstantVariable) or device.value not in AUTOCAST_DEVICES:
        raise GraphBreak("untraceable_call", "get_autocast_dtype() of a device whose autocast is not guarded")
    return folding.fold(torch.get_autocast_dtype, args)


@handles(torch.jit.annotate)
def annotate(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return args[1]


@handles(torch._C._log_api_usage_once)
def log_api_usage(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return NONE


@handles(torch.broadcast_shapes)
def broadcast_shapes(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if kwargs:
        raise GraphBreak("untraceable_call", "broadcast_shapes with names")
    return folding.fold(torch.broadcast_shapes, [constant(calls.plain_value(tx, realize(a, tx.state))) for a in args])
