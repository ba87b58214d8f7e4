"""torch.func's transforms: one node that calls the real transform, on the graph of the function that it transforms.

The transform itself calls the function while it is traced, on fake tensors in the wrappers of its own. So what the function
sees (shapes under ``vmap``, ``requires_grad`` under ``grad``) is what it sees in eager mode.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from ..errors import GraphBreak
from ..model.dispatch import handles
from ..model.value import NONE, MethodVariable, ObjectVariable, TensorVariable, VariableTracker, constant
from ..polyfills import pytree as polyfilled_pytree
from ..polyfills import transforms as polyfills
from ..semantics import calls
from ..semantics.wrapping import need_constant_deep, wrap_pinned
from . import running, subgraphs

func: Any = torch.func


class TransformVariable(MethodVariable):
    """What ``torch.func.grad(f)`` gives: a function that calls ``f`` through ``make``, torch's transform with its options."""

    __slots__ = ("args",)

    def __init__(self, tx: Any, name: str, make: Callable, fn: VariableTracker) -> None:
        super().__init__(wrap_pinned(tx, call_transform), NONE)
        self.args = [constant(name), ObjectVariable(make, type(make)), fn]

    def python_type(self) -> type:
        return types.FunctionType

    def with_bound(self, args: list, kwargs: dict) -> tuple[list, dict]:
        return [*self.args, *args], kwargs


def call_transform(name: str, make: Callable, fn: Callable, *args: Any, **kwargs: Any) -> Any:
    """What the call of a TransformVariable stands for."""
    return make(fn)(*args, **kwargs)


@handles(call_transform)
def traced_call(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    name, make, fn = args[0].value, args[1].value, args[2]
    given = [subgraphs.as_structure(tx, a) for a in args[3:]], {k: subgraphs.as_structure(tx, v) for k, v in kwargs.items()}
    return apply(tx, name, make, fn, given)


def apply(tx: Any, name: str, make: Callable, fn: VariableTracker, given: Any) -> VariableTracker:
    """Trace ``make(fn)(*args, **kwargs)``; ``given`` is (args, kwargs) as structures of trackers."""
    graph = tx.state.graph
    leaves, spec = pytree.tree_flatten(given)
    tensors = [leaf for leaf in leaves if isinstance(leaf, TensorVariable)]
    found: list[subgraphs.Traced] = []

    def rehearse(*args: Any, **kwargs: Any) -> Any:
        if found:
            raise GraphBreak("untraceable_call", f"{name}, which calls its function more than once")
        with _disable_current_modes():  # each operation of the body enters them anew
            found.append(subgraphs.trace(tx, name, fn, args, kwargs))
        return found[0].results

    fake_args, fake_kwargs = pytree.tree_map(lambda v: v.fake if isinstance(v, TensorVariable) else v, given)
    try:
        with graph.propagating():
            result = make(rehearse)(*fake_args, **fake_kwargs)
    except running.PROPAGATION_ERRORS as error:
        raise running.not_propagated(f"torch.func.{name}", error) from None
    if not found:
        raise GraphBreak("untraceable_call", f"{name}, which did not call its function")
    traced = found[0]
    outputs, shape = pytree.tree_flatten(result)
    if any(isinstance(o, VariableTracker) for o in outputs):
        raise GraphBreak("untraceable_call", f"{name} of a function that returns something other than tensors and constants")
    running.note_errors(tx.state, name, True)
    inner = graph.submodule(name, traced.module())
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, TensorVariable)]
    template = [None if isinstance(leaf, VariableTracker) else leaf for leaf in leaves]
    target = _target(name, make, (places, template, spec), traced.results)
    node = graph.node("call_function", target, (inner, *(t.node for t in tensors), *traced.lifted), {})
    node.meta["stack_trace"] = tx.state.stack_trace()
    tx.state.dirty += 1
    unwrap = running.Unwrapper(tx, target)
    unwrap.by_fake = {id(t.fake): t for t in tensors}
    real = [o for o in outputs if isinstance(o, torch.Tensor)]
    wrapped = iter(running.wrap_result(tx, node, tuple(real), unwrap).items)  # type: ignore[attr-defined]
    flat = [next(wrapped) if isinstance(o, torch.Tensor) else o for o in outputs]
    return subgraphs.as_tracker(tx, pytree.tree_unflatten(flat, shape))


def _target(name: str, make: Callable, call: tuple, results: Any) -> Callable:
    """The node's function: (graph of the function, tensors among the arguments, tensors from around) to a flat tuple of tensors."""
    places, template, spec = call
    outputs, shape = pytree.tree_flatten(results)
    outputs = [None if isinstance(o, torch.Tensor) else o for o in outputs]
    kept = [i for i, o in enumerate(pytree.tree_leaves(results)) if isinstance(o, torch.Tensor)]

    def transform(body: Any, *tensors: Any) -> tuple:
        lifted = tensors[len(places) :]

        def inner(*args: Any, **kwargs: Any) -> Any:
            flat = list(outputs)
            for place, value in zip(kept, body(*subgraphs.tensors_of((args, kwargs)), *lifted), strict=True):
                flat[place] = value
            return pytree.tree_unflatten(flat, shape)

        flat = list(template)
        for place, value in zip(places, tensors, strict=False):
            flat[place] = value
        args, kwargs = pytree.tree_unflatten(flat, spec)
        return tuple(subgraphs.tensors_of(make(inner)(*args, **kwargs)))

    transform.__name__ = transform.__qualname__ = f"func_{name}"
    return transform


def _options(tx: Any, args: list, kwargs: dict, defaults: dict[str, Any]) -> dict[str, Any]:
    """The options of a transform, as constants."""
    given = dict(zip(defaults, args, strict=False)) | kwargs
    found = {key: subgraphs.as_structure(tx, value) for key, value in given.items()}
    if not found.keys() <= defaults.keys() or any(isinstance(v, VariableTracker) for v in pytree.tree_leaves(list(found.values()))):
        raise GraphBreak("untraceable_call", "a transform of torch.func with options that are no constants")
    return defaults | found


def _registers(name: str, *functions: Any, **defaults: Any) -> None:
    """A transform called as ``transform(f, ...options)``."""
    real = functions[0]

    @handles(*functions)
    def transformed(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        options = _options(tx, args[1:], kwargs, defaults)
        if not args or options.get("chunk_size") is not None:
            raise GraphBreak("untraceable_call", f"torch.func.{name} in chunks, or with its function as a keyword")

        def make(inner: Callable) -> Callable:
            return real(inner, **options)

        return TransformVariable(tx, name, make, args[0])


for _transform, (_polyfill, _names) in polyfills.CLOSURES.items():
    for _const in _transform.__code__.co_consts:
        if isinstance(_const, types.CodeType) and _const.co_freevars == _names:
            calls.REPLACED[_const] = _polyfill
            calls.WHOLE.add(_const)


_registers("grad", func.grad, argnums=0, has_aux=False)
_registers("grad_and_value", func.grad_and_value, argnums=0, has_aux=False)
_registers("vmap", func.vmap, in_dims=0, out_dims=0, randomness="error", chunk_size=None)
_registers("jacrev", func.jacrev, argnums=0, has_aux=False, chunk_size=None, _preallocate_and_copy=False)
_registers("jacfwd", func.jacfwd, argnums=0, has_aux=False, randomness="error")
_registers("hessian", func.hessian, argnums=0)


@handles(func.jvp)
def jvp(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    named = {k: need_constant_deep(v) for k, v in kwargs.items()}
    if len(args) != 3:
        raise GraphBreak("untraceable_call", "torch.func.jvp with other arguments than a function, primals and tangents")

    def make(inner: Callable) -> Callable:
        return lambda primals, tangents: func.jvp(inner, primals, tangents, **named)

    return apply(tx, "jvp", make, args[0], ([subgraphs.as_structure(tx, a) for a in args[1:]], {}))


calls.REPLACED[pytree.tree_map_only.__code__] = polyfilled_pytree.tree_map_only
