"""torch.func's transforms: one node that calls the real transform, on the graph of the function that it transforms.

The transform itself calls the function while it is traced, on fake tensors in the wrappers of its own. So what the function
sees (shapes under ``vmap``, ``requires_grad`` under ``grad``) is what it sees in eager mode.
"""

from __future__ import annotations

import contextlib
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from ..errors import GraphBreak
from ..model.dispatch import handles
from ..model.value import NONE, MethodVariable, ObjectVariable, TensorVariable, TupleVariable, VariableTracker, constant
from ..polyfills import pytree as polyfilled_pytree
from ..polyfills import transforms as polyfills
from ..semantics import calls
from ..semantics.wrapping import need_constant_deep, wrap_pinned
from . import running, subgraphs
from .raising import note_errors

func: Any = torch.func


class TransformVariable(MethodVariable):
    """What ``torch.func.grad(f)`` gives: a function that calls ``f`` through ``make``, torch's transform with its options."""

    __slots__ = ("args", "make")

    def __init__(self, tx: Any, name: str, make: Callable, fn: VariableTracker) -> None:
        super().__init__(wrap_pinned(tx, call_transform), NONE)
        self.make = make
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


def apply(tx: Any, name: str, make: Callable, fn: VariableTracker, given: Any, told: list | None = None) -> VariableTracker:
    """Trace ``make(fn)(*args, **kwargs)``; ``given`` is (args, kwargs) as structures of trackers.

    ``told`` is told what each call of the function does: code, what it names and tensors from around it, whether there are graphs inside.
    """
    graph = tx.state.graph
    leaves, spec = pytree.tree_flatten(given)
    tensors = [leaf for leaf in leaves if isinstance(leaf, TensorVariable)]
    found: list[subgraphs.Traced] = []

    def rehearse(*args: Any, **kwargs: Any) -> Any:
        if len(found) == _MOST_CALLS:
            raise GraphBreak("untraceable_call", f"{name}, which calls its function more than {_MOST_CALLS} times")
        with _disable_current_modes():  # each operation of the body enters them anew
            found.append(subgraphs.trace(tx, name, fn, args, kwargs, replays=told is None))
        return found[-1].results

    fake_args, fake_kwargs = pytree.tree_map(lambda v: v.fake if isinstance(v, TensorVariable) else v, given)
    try:
        with _dispatching_as_before(), graph.propagating():
            result = make(rehearse)(*fake_args, **fake_kwargs)
    except running.PROPAGATION_ERRORS as error:
        raise running.not_propagated(f"torch.func.{name}", error) from None
    if not found:
        raise GraphBreak("untraceable_call", f"{name}, which did not call its function")
    outputs, shape = pytree.tree_flatten(result)
    if any(isinstance(o, VariableTracker) for o in outputs):
        raise GraphBreak("untraceable_call", f"{name} of a function that returns something other than tensors and constants")
    note_errors(tx.state, name, True)
    modules = [traced.module() for traced in found]
    if told is not None:
        told += [(m.code, [traced.lifted, [n.target for n in m.graph.nodes]], any(True for _ in m.children()))
                 for m, traced in zip(modules, found, strict=True)]
    inner = [graph.submodule(name, module) for module in modules]
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, TensorVariable)]
    template = [None if isinstance(leaf, VariableTracker) else leaf for leaf in leaves]
    target = _target(name, make, (places, template, spec), [(traced.results, len(traced.lifted)) for traced in found])
    around = [node for traced in found for node in traced.lifted]
    node = graph.node("call_function", target, (*inner, *(t.node for t in tensors), *around), {})
    node.meta["stack_trace"] = tx.state.stack_trace()
    tx.state.dirty += 1
    unwrap = running.Unwrapper(tx, target)
    unwrap.by_fake = {id(t.fake): t for t in tensors}
    real = [o for o in outputs if isinstance(o, torch.Tensor)]
    wrapped = iter(running.wrap_result(tx, node, tuple(real), unwrap).items)  # type: ignore[attr-defined]
    flat = [next(wrapped) if isinstance(o, torch.Tensor) else o for o in outputs]
    return subgraphs.as_tracker(tx, pytree.tree_unflatten(flat, shape))


@contextlib.contextmanager
def _dispatching_as_before() -> Iterator[None]:
    """Torch holds a guard while it tells of tensors in an error's message: where that fails, it lives in the error's traceback.

    It puts back torch's dispatch keys of that moment when it dies, so it has to die here, before those of this moment are put back.
    """
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()):
        try:
            yield
        except running.PROPAGATION_ERRORS as error:
            found: BaseException | None = error
            while found is not None:
                traceback.clear_frames(found.__traceback__)
                found = found.__context__
            raise


_MOST_CALLS = 64  # of one function by a transform: vmap and jacrev with chunk_size


class _Body:
    """What one call of the function does and gives: a graph that gives the tensors among its results."""

    def __init__(self, results: Any, lifted: int) -> None:
        outputs, self.shape = pytree.tree_flatten(results)
        self.outputs = [None if isinstance(o, torch.Tensor) else o for o in outputs]
        self.kept = [i for i, o in enumerate(outputs) if isinstance(o, torch.Tensor)]
        self.lifted = lifted

    def call(self, graph: Any, args: tuple, kwargs: dict, lifted: Any) -> Any:
        flat = list(self.outputs)
        for place, value in zip(self.kept, graph(*subgraphs.tensors_of((args, kwargs)), *lifted), strict=True):
            flat[place] = value
        return pytree.tree_unflatten(flat, self.shape)


def _target(name: str, make: Callable, call: tuple, calls_of: list) -> Callable:
    """The node's function: (a graph for each call of the function, tensors among the arguments, tensors from around) to a flat tuple."""
    places, template, spec = call
    bodies = [_Body(*told) for told in calls_of]

    def transform(*given: Any) -> tuple:
        graphs, tensors = given[: len(bodies)], given[len(bodies) :]
        around = iter(tensors[len(places) :])
        turns = iter([(body, graph, [next(around) for _ in range(body.lifted)]) for body, graph in zip(bodies, graphs, strict=True)])

        def inner(*args: Any, **kwargs: Any) -> Any:
            body, graph, lifted = next(turns)
            return body.call(graph, args, kwargs, lifted)

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
        if not args:
            raise GraphBreak("untraceable_call", f"torch.func.{name} with its function as a keyword")

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


class PullVariable(MethodVariable):
    """What ``vjp`` gives to be called with cotangents: the function is computed anew for them. It stays in the trace."""

    __slots__ = ("of",)

    def __init__(self, tx: Any, of: tuple) -> None:
        super().__init__(wrap_pinned(tx, pull), NONE)
        self.of = of

    def python_type(self) -> type:
        return types.FunctionType

    def with_bound(self, args: list, kwargs: dict) -> tuple[list, dict]:
        return [self, *args], kwargs


@handles(func.vjp)
def vjp(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    aux = need_constant_deep(kwargs.pop("has_aux", constant(False)))
    if kwargs or not args or type(aux) is not bool:
        raise GraphBreak("untraceable_call", "torch.func.vjp with other keywords than a constant has_aux")
    given = [subgraphs.as_structure(tx, a) for a in args[1:]], {}
    mode, told = tx.state.graph.mode, []
    before, mode.random = mode.random, False
    try:
        result = apply(tx, "vjp", lambda inner: lambda *primals: func.vjp(inner, *primals, has_aux=aux)[::2], args[0], given, told)
        if mode.random:
            raise GraphBreak("random_call", "torch.func.vjp of a function that draws random numbers")
    finally:
        mode.random |= before
    out, *more = result.items  # type: ignore[attr-defined]
    return TupleVariable([out, PullVariable(tx, (args[0], given[0], aux, told, subgraphs.versions(tx))), *more])


def pull(of: Any, *args: Any) -> Any:
    """Stands for what ``vjp`` gives."""
    raise NotImplementedError


@handles(pull)
def traced_pull(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """The function must do what it did, on tensors that are as they were."""
    fn, primals, aux, told, versions = args[0].of
    if len(args) != 2 or kwargs:
        raise GraphBreak("untraceable_call", "what torch.func.vjp gave, called with something else than cotangents")
    if any(value._version != version for value, version in versions):
        raise GraphBreak("unsupported_mutation", "a tensor that changes before what torch.func.vjp gave is called")

    def make(inner: Callable) -> Callable:
        return lambda given, cotangents: func.vjp(inner, *given, has_aux=aux)[1](cotangents)

    again: list = []
    result = apply(tx, "vjp", make, fn, ([primals, subgraphs.as_structure(tx, args[1])], {}), again)
    if again != told or any(nested for _, _, nested in told):
        raise GraphBreak("unsupported_mutation", "torch.func.vjp of a function that looks at what has changed since")
    return result


calls.REPLACED[pytree.tree_map_only.__code__] = polyfilled_pytree.tree_map_only
