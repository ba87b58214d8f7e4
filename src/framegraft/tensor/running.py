"""An operation runs on fake tensors, and becomes a node of the graph; its results become trackers."""

from __future__ import annotations

import ast
import contextlib
import keyword
import operator
import types
from collections.abc import Iterable
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.value import (
    MISSING,
    NONE,
    ChangingVariable,
    ConstantVariable,
    DictVariable,
    ListVariable,
    ObjectVariable,
    SliceVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..semantics import making, members
from . import accelerators, indexing, kept, numpy, subclasses, symbolic, whole, wrappers
from .fake import DATA_DEPENDENT, FakeTensor
from .raising import fills_by_mask, keep_assumed, may_raise, note_errors
from .watching import New, Watch

_DTYPES = {int: torch.int64, float: torch.float64, bool: torch.bool, complex: torch.complex128}  # as a dtype argument


def _is_literal(value: complex) -> bool:
    """Whether source code with its repr gives the number again: signs of zeros get lost, and infinities have no literal."""
    try:
        return repr(ast.literal_eval(repr(value))) == repr(value)
    except ValueError:
        return False


class Unwrapper:
    """Trackers to FX arguments and to fake arguments, side by side."""

    def __init__(self, tx: Any, target: Any = "") -> None:
        self.tx = tx
        self.target = target
        self.by_fake: dict[int, TensorVariable] = {}
        self.saw_tensor = False

    def both(self, tracker: VariableTracker) -> tuple[Any, Any]:
        tracker = realize(tracker, self.tx.state)
        if isinstance(tracker, TensorVariable):
            if self.tx.state.overriding and not self.tx.state.overrides_off and subclasses.is_live(tracker.cls):
                raise GraphBreak("input_subclass", f"an operation that {tracker.cls.__name__}.__torch_function__ may not have seen")
            self.by_fake[id(tracker.fake)] = tracker
            self.saw_tensor = True
            return tracker.node, tracker.fake
        if type(tracker) is ChangingVariable:
            tracker = numpy.symbol_of(tracker, self.target)
        if isinstance(tracker, ConstantVariable):
            value = tracker.value
            if type(value) is complex and not _is_literal(value):
                raise GraphBreak("untraceable_call", f"{value!r}, which a graph's code cannot spell")
            if type(value) in numpy.SCALARS:
                value = numpy.number_of(value, self.target)
            return value, value
        if isinstance(tracker, SymbolicVariable):
            if tracker.cls is bool and not self.tx.state.graph.symbols.is_unbacked(tracker.value):
                return (symbolic.specialise(tracker).value,) * 2  # type: ignore[attr-defined]
            node = self.tx.state.graph.symbols.node(tracker)
            return node, tracker.value if isinstance(node, torch.fx.Node) else node
        if isinstance(tracker, ObjectVariable) and type(tracker.value) is type and tracker.value in _DTYPES:
            return _DTYPES[tracker.value], _DTYPES[tracker.value]
        member = members.plain_value(tracker)
        if member is not None:
            return member.value, member.value
        if isinstance(tracker, ObjectVariable) and tracker.payload is not None:
            if isinstance(tracker.payload, TupleVariable) and tracker.value is MISSING:
                return self.both(tracker.payload)
        if isinstance(tracker, (ListVariable, TupleVariable)):
            pairs = [self.both(i) for i in tracker.items]
            make = list if isinstance(tracker, ListVariable) else tuple
            return make(p[0] for p in pairs), make(p[1] for p in pairs)
        if isinstance(tracker, SliceVariable):
            pairs = [self.both(i) for i in tracker.items]
            return slice(*(p[0] for p in pairs)), slice(*(p[1] for p in pairs))
        if isinstance(tracker, DictVariable) and tracker.source is None:
            pairs2 = {k: self.both(v) for k, (_, v) in tracker.items.items()}
            return {k: p[0] for k, p in pairs2.items()}, {k: p[1] for k, p in pairs2.items()}
        raise GraphBreak("untraceable_call", f"a {tracker.python_type().__name__} as an argument of a tensor operation")

PLAIN_OPERATORS: dict[Any, Any] = {
    getattr(operator, name): getattr(operator, name.strip("_")[1:], None) or getattr(operator, name.strip("_")[1:] + "_")
    for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul", "iand", "ior", "ixor", "ilshift",
                 "irshift")
}

FLOATS: list[Any] = []  # (tx, target, args, kwargs) -> the value, or None; set by floats.py, which builds on this file

KEYS: list[Any] = []  # (tx, args of an indexing) -> these, with tensors for arrays in the key; set by arrays.py, likewise

NUMBERS: list[Any] = []  # (tx, target, args, run) -> the value, or None; set by optim.py, which builds on this file


def run_node(tx: Any, kind: str, target: Any, args: list, kwargs: dict) -> VariableTracker:
    """Add a node for the operation and wrap what it gives."""
    if tx.state.graph.has_numbers:
        computed = NUMBERS[0](tx, target, args, lambda args: _run_node(tx, kind, target, args, kwargs))
        if computed is not None:
            return computed
    return _run_node(tx, kind, target, args, kwargs)


def _run_node(tx: Any, kind: str, target: Any, args: list, kwargs: dict) -> VariableTracker:
    state = tx.state
    if state.function_modes:
        raise GraphBreak("unsupported_context", f"{target}, which a TorchFunctionMode may not have seen")
    spared = state.graph.policy is not None and state.graph.policy.tensor_floats
    if spared or state.graph.refuses_numbers and isinstance(kwargs.get("alpha"), TensorVariable):
        rewritten = FLOATS[0](tx, target, args, kwargs)
        if rewritten is not None:
            return rewritten
    if target in indexing.BY_KEY and isinstance(args[0], TensorVariable):
        args = KEYS[0](tx, args)
        exact = state.rescue or state.graph.data_numbers  # else an index that is out of range has other words than in eager mode
        if state.graph.reads_numbers and state.graph.body is None and exact:
            args = [args[0], indexing.with_numbers(tx, args[1]), *args[2:]]
        selected = _selected(tx, target, args) if state.graph.policy is not None else None
        if selected is not None:
            return selected
    name = target if kind == "call_method" else getattr(target, "__name__", str(target))
    if target in PLAIN_OPERATORS and not isinstance(args[0], TensorVariable):
        target = PLAIN_OPERATORS[target]  # `0 += tensor` binds a new object
    if not all(map(_is_name, kwargs)):
        args, kwargs = _by_position(name, target, args, kwargs)
    unwrap = Unwrapper(tx, target)
    pairs = [unwrap.both(a) for a in args]
    named = {k: unwrap.both(v) for k, v in kwargs.items()}
    fake_args, fake_kwargs = [p[1] for p in pairs], {k: p[1] for k, p in named.items()}
    if isinstance(fake_kwargs.get("alpha"), torch.Tensor):
        fake_kwargs["alpha"] = _number_like(state.graph, name, fake_kwargs["alpha"])
    if state.graph.leaves:
        state.graph.check_leaves([t.fake for t in unwrap.by_fake.values()])
    if "generator" in fake_kwargs and fake_kwargs["generator"] is not None:
        raise GraphBreak("random_call", "an explicit random generator")
    before: list[tuple[TensorVariable, tuple]] = []
    raises = may_raise(name, unwrap.by_fake.values()) and not fills_by_mask(name, args)
    caught = note_errors(state, name, raises)
    # A call that has sizes of symbols is no block: looking at them would guard them.
    blocks = state.blocks if state.blocks is not None and state.blocks.open and state.graph.symbols is None else None
    holders = wrappers.held(unwrap.by_fake.values()) if state.graph.mode.wrappers is not None else []
    heard = state.graph.unheard.count
    watch = Watch(state.graph.mode, () if blocks is None else unwrap.by_fake.values())
    rebound = state.graph.rebound and kept.among(state.graph.rebound, unwrap.by_fake)
    try:
        result = NotImplemented if rebound else whole.infer(state.graph.mode, target, fake_args, fake_kwargs)
        inferred = result is not NotImplemented
        if not inferred:
            before = [(t, metadata(t.fake)) for t in unwrap.by_fake.values()]
            with _decomposed(target, unwrap.by_fake.values()), state.graph.propagating():
                if kind == "call_method":
                    result = getattr(fake_args[0], target)(*fake_args[1:], **fake_kwargs)
                else:
                    result = target(*fake_args, **fake_kwargs)
    except PROPAGATION_ERRORS as error:
        reads = state.graph.reads_numbers and _reads_a_number(error)
        if isinstance(error, DATA_DEPENDENT) and state.graph.symbols is None and (state.graph.data_shapes or reads):
            state.graph.use_symbols()
            return run_node(tx, kind, target, args, kwargs)
        raise not_propagated(name, error) from None
    if state.catching and state.graph.unheard.count != heard:
        raise GraphBreak("unsupported_context", f"{name} warns, inside of warnings.catch_warnings")
    if target is torch.lstm:
        _check_states(fake_args, result)
    if holders:
        wrappers.check_held(holders, name)
    state.dirty += 1
    state.grew_at = state.steps
    if state.graph.symbols is not None:
        state.graph.mode.has_unbacked |= bool(state.graph.symbols.env.pending_fresh_unbacked_symbols)
        keep_assumed(state, name, fake_args, fake_kwargs)
    node = state.graph.node(kind, target, tuple(p[0] for p in pairs), {k: p[0] for k, p in named.items()})
    if tx.state.frames:
        node.meta["stack_trace"] = state.stack_trace()
    for tracker, old in before:
        if metadata(tracker.fake) != old and not _may_change(state.graph, tracker, old):
            state.graph.graph.erase_node(node)
            raise GraphBreak("unsupported_mutation", f"{name} changes the metadata of an input")
    if state.graph.rebound and (any(fake._version for fake in state.graph.rebound) or
                                kept.keeps(result, rebound, unwrap.by_fake.values())):
        state.graph.graph.erase_node(node)
        raise GraphBreak("unsupported_mutation", f"{name} of a tensor whose data was set: it changes it, or autograd saves it")
    if "device" in kwargs or target in _MOVES:
        accelerators.note_moves(tx, target, (*args[1:], *kwargs.values()))
    given = _given_back(result, (*args, *kwargs.values()), (*fake_args, *fake_kwargs.values()))
    if given is not None:
        return given
    calls = state.graph.call_count - 1
    made = wrap_result(tx, node, result, unwrap)
    if blocks is not None:
        recipe = New.like(result) if inferred else watch.recipe(target, result) if not raises else None
        blocks.note(kind, target, args, kwargs, made, node, state.graph.call_count - calls, caught, recipe)
    return made


_MOVES = frozenset(("to", "cuda", "xpu", "type"))  # methods that say where their result is to be
RECURRENT = frozenset((torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu))


def _reads_a_number(error: Exception) -> bool:
    """Whether torch's own code, not the program, wants to know the number in a tensor: ``torch.full(shape, t)``, ``x.narrow(0, t, 1)``."""
    return getattr(error, "func", None) is torch.ops.aten._local_scalar_dense.default


def _decomposed(target: Any, tensors: Iterable[TensorVariable]) -> Any:
    """cuDNN looks where in memory the weights are (RNN.cpp: try_get_weight_buf), which fake ones do not tell."""
    unknown = target in RECURRENT and any(t.fake.device.type != "cpu" for t in tensors)
    return enable_python_dispatcher() if unknown else contextlib.nullcontext()


def _check_states(args: list, result: Any) -> None:
    """GraphBreak where a decomposition gives states of another shape than it takes, as that of torch 2.11 does for batches."""
    states = next(arg for arg in args if isinstance(arg, (list, tuple)))
    if [state.dim() for state in states] != [state.dim() for state in result[1:]]:
        raise GraphBreak("fake_tensor_failure", "lstm: torch's decomposition gives states of another shape")


def _given_back(result: Any, trackers: Iterable[VariableTracker], fakes: Iterable[Any]) -> VariableTracker | None:
    """The list among the operands that is the result: functions in Python give ``out`` back, operations in place on lists these lists."""
    if not isinstance(result, (list, tuple)):
        return None
    return next((tracker for tracker, fake in zip(trackers, fakes, strict=True) if result is fake), None)


def _is_name(word: str) -> bool:
    """Whether the source that FX prints can have a keyword argument of that name."""
    return word.isidentifier() and not keyword.iskeyword(word)


def _by_position(name: str, target: Any, args: list, kwargs: dict) -> tuple[list, dict]:
    """The arguments with the one whose name is Python's (``from`` of ``uniform_``) behind the others, where the operation has it there."""
    packet = getattr(torch.ops.aten, name, None) if isinstance(target, (str, *_IN_C)) else None
    odd = [word for word in kwargs if not _is_name(word)]
    left = {word: value for word, value in kwargs.items() if word not in odd}
    for overload in packet.overloads() if packet is not None else ():
        arguments = getattr(packet, overload)._schema.arguments
        needed = {a.name for a in arguments[len(args) :] if not a.has_default_value()}
        if [a.name for a in arguments[len(args) : len(args) + 1] if not a.kwarg_only] == odd and needed <= kwargs.keys():
            return [*args, kwargs[odd[0]]], left
    raise GraphBreak("untraceable_call", f"{name} with an argument named {odd[0]!r}")


_IN_C = (types.MethodDescriptorType, types.BuiltinFunctionType)


def _selected(tx: Any, target: Any, args: list) -> VariableTracker | None:
    """Reading or writing of what positions that are symbols select; None where there are none."""
    obj: Any
    obj, key, *value = args
    found = indexing.selections(obj.fake.dim(), realize(key, tx.state), lambda item: realize(item, tx.state))
    if found is None:
        return None
    first, picked, rest = found
    if first is not None:
        obj = run_node(tx, "call_function", operator.getitem, [obj, first], {})
    symbols = tx.state.graph.symbols
    for dim, index in picked:
        if symbols is not None and (symbols.is_unbacked(index.value) or symbols.is_unbacked(obj.fake.shape[dim])):
            note_errors(tx.state, "getitem", True)  # whose words for an index that is out of range are not those of select()
        index = indexing.from_start(tx, index, obj.fake.shape[dim])
        obj = run_node(tx, "call_function", torch.select, [obj, constant(dim), index], {})
    if rest is None and not value:
        return obj
    return run_node(tx, "call_function", target, [obj, rest or constant(...), *value], {})


def _number_like(graph: Any, name: str, alpha: torch.Tensor) -> Any:
    """What stands for the number that an operation reads from a tensor, ``x.add_(y, alpha=t)``: it decides nothing about the result."""
    spared = graph.refuses_numbers or graph.policy is not None and graph.policy.tensor_floats
    if spared or alpha.dim() or alpha.requires_grad or alpha.device.type != "cpu":
        raise GraphBreak("tensor_item", f"the number that {name} reads from a tensor")
    graph.takes_numbers = True
    return torch.ones((), dtype=alpha.dtype).item()


PROPAGATION_ERRORS = (*DATA_DEPENDENT, RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AssertionError,
                      AttributeError, ArithmeticError, torch.jit.Error)


def not_propagated(name: str, error: BaseException) -> GraphBreak:
    """The break for an operation that failed on fake tensors. Eager words the error best, and may not even raise it."""
    if isinstance(error, DATA_DEPENDENT):
        return GraphBreak("dynamic_output_shape" if "Dynamic" in type(error).__name__ else "tensor_item", f"{name}: {error}")
    if symbolic.is_data_dependent(error):
        return GraphBreak("dynamic_output_shape", f"{name}: {symbolic.asked(error)}")
    return GraphBreak("fake_tensor_failure", f"{name}: {error}")


def metadata(fake: Any) -> tuple:
    """What an operation in place must leave as it is."""
    if type(fake) is not FakeTensor:  # of a transform of torch.func
        return (fake.shape, fake.dtype)
    return (fake.shape, fake.stride(), fake.dtype, fake.requires_grad, fake.storage_offset())


def _may_change(graph: Any, tracker: TensorVariable, old: tuple) -> bool:
    """An input may come to require a gradient, and nothing else; what the trace has made, all."""
    now = metadata(tracker.fake)
    gains = len(old) == 5 and now[3] and not old[3]
    if gains and not graph.gain(tracker.fake):
        return False
    return tracker.source is None or gains and (*now[:3], *now[4:]) == (*old[:3], *old[4:])


_QUANTIZED = frozenset((torch.quint8, torch.qint8, torch.qint32, torch.quint4x2, torch.quint2x4))
_KNOWN = (bool, int, float, str, torch.dtype, torch.device, torch.Size)  # results that the fake operation tells
_CLASSES = (FakeTensor, torch.Tensor, torch.nn.Parameter)  # plain ones: of transforms of torch.func


def wrap_result(tx: Any, node: Any, result: Any, unwrap: Unwrapper) -> VariableTracker:
    symbols = tx.state.graph.symbols
    if symbols is not None:
        symbols.bind(node, result)
    if isinstance(result, torch.Tensor):
        same = unwrap.by_fake.get(id(result))
        if same is not None:
            return same
        if result.layout is not torch.strided or result.dtype in _QUANTIZED:  # fake tensors know too little about these
            raise GraphBreak("sparse_or_complex_layout", f"an operation that gives a tensor of {result.layout}, {result.dtype}")
        if type(result) not in _CLASSES and not _is_wrapper(tx, result):
            raise GraphBreak("input_subclass", f"an operation that gives a {type(result).__name__}")
        node.meta["example_value"] = result
        if tx.state.graph.mode.has_unbacked:
            tx.state.graph.symbols.bind_sizes(node, result)
        made = TensorVariable(node, result, type_of_fake(result))
        known = tx.state.graph.mode.wrappers  # a method of a wrapper may give what it holds
        return made if known is None else realize(known.setdefault(id(result), made), tx.state)
    if isinstance(result, (list, tuple)):
        items: list[VariableTracker] = []
        for index, item in enumerate(result):
            if item is None or isinstance(item, _KNOWN):
                items.append(constant(item))
                continue
            part = tx.state.graph.graph.call_function(operator.getitem, (node, index), {})
            items.append(wrap_result(tx, part, item, unwrap))
            if isinstance(items[-1], TensorVariable):
                unwrap.by_fake[id(item)] = items[-1]  # which may be given several times
        node.meta["example_value"] = result
        if isinstance(result, list):
            return ListVariable(items)
        made = TupleVariable(items)
        if type(result) is not tuple:
            return _struct(type(result), made)
        return made
    if type(result) in symbolic.CLASSES:
        return symbolic.wrap_number(tx, node, result)
    if result is None:
        return NONE  # done for its effect, as x[i] = v is
    if isinstance(result, _KNOWN):
        tx.state.graph.graph.erase_node(node)
        tx.state.graph.call_count -= 1
        return constant(result)
    raise GraphBreak("untraceable_call", f"an operation that gives a {type(result).__name__}")


def _is_wrapper(tx: Any, result: Any) -> bool:
    mode = tx.state.graph.mode
    if mode.wrappers is None or not wrappers.is_made_of_fakes(mode, result) or not subclasses.is_captured(tx.state, type(result)):
        return False
    if mode.shape_env is not None:
        wrappers.settle_context(result)
    return True


def _struct(cls: type, items: TupleVariable) -> VariableTracker:
    """torch.return_types.max and friends: named tuples made in C."""
    made = StructVariable(MISSING, cls)
    made.payload = items
    return made


class StructVariable(ObjectVariable):
    __slots__ = ()


def _new_struct(tx: Any, cls: Any, items: list) -> VariableTracker:
    """``torch.return_types.max(items)``"""
    if len(items) != cls.n_sequence_fields:
        raise GraphBreak("raised_exception", f"{cls.__name__}() of {len(items)} items")
    return _struct(cls, TupleVariable(items))


making.STRUCT_SEQUENCES.update(dict.fromkeys(torch.return_types.all_return_types, _new_struct))


def type_of_fake(fake: Any) -> type:
    if type(fake) is not FakeTensor and wrappers.is_wrapper(type(fake)):
        return type(fake)
    return torch.nn.Parameter if getattr(fake, "_is_param", False) else torch.Tensor


def read(tx: Any, obj: TensorVariable, name: str) -> VariableTracker:
    """A node that reads an attribute."""
    return run_node(tx, "call_function", getattr, [obj, constant(name)], {})


wrappers.READ.append(read)
