"""The places where upper layers plug in: tables from Python callables to their meaning on trackers."""

from __future__ import annotations

import contextlib
import dis
import functools
from typing import Any

from ..errors import GraphBreak
from .value import ChangingVariable, SymbolicVariable

HANDLERS: dict[int, Any] = {}  # id(callable) -> handler(tx, args, kwargs)
_ALIVE: list = []
METHODS: dict[tuple[type, str], Any] = {}  # (tracker class, method) -> handler(tx, obj, args, kwargs)
CLASSES: dict[type, Any] = {}  # class -> handler(tx, cls, args, kwargs), for calls of the class


class TensorLayer:
    """Filled by ``tensor.torchops``: the interpreter below knows no torch."""

    takes: Any = lambda self, fn, args, kwargs: False
    call: Any = None
    #: (tx, callable, args, kwargs) -> kwargs, where a default device is or was in force
    with_device: Any = None
    #: (tx) -> a context in which the devices are the default ones that the program has here, for code of its own that runs
    devices_of_program: Any = lambda self, tx: contextlib.nullcontext()
    #: (tx, callable, args, kwargs) -> what ``__torch_function__`` of an argument's class gives, None where none is asked
    overridden: Any = lambda self, tx, fn, args, kwargs: None
    #: (tx, class, args, kwargs) -> what a call of the class gives, None where ``__new__`` and ``__init__`` are to be traced
    construct: Any = lambda self, tx, cls, args, kwargs: None
    get_attr: Any = None
    set_attr: Any = None
    call_method: Any = None
    #: (tx, tensor, *names): a break where the program has put something else under these names into the tensor's class
    check_class: Any = None
    #: (tx, tensor, memo) -> a copy by the copy module: a shallow one where memo is None
    duplicate: Any = None
    truth: Any = None
    #: (tx, value, truth) -> whether the trace may go on as if bool(value) were that, because the graph checks it
    assume: Any = lambda self, tx, value, truth: False
    #: (object, name): has an object make the attribute, if its class (by id) is one of ``lazy``, which make them when first asked
    load: Any = None
    lazy: frozenset[int] = frozenset()
    wrap: Any = None
    is_constant_type: Any = lambda self, cls: False
    #: whether there is one object for each value of the class
    is_singleton_type: Any = lambda self, cls: False
    #: (tx, callable, args, kwargs, go) -> what go() gives, where it can tell that without it
    block: Any = lambda self, tx, fn, args, kwargs, go: go()
    is_block: Any = lambda self, value: False
    #: (state, value, source) -> the symbolic number for an int or float from outside, None for a constant
    number: Any = lambda self, state, value, source: None
    #: (tx, fn, args) -> a tracker, or None where only the values can tell. args: numbers, at least one of them symbolic.
    symbolic: Any = None
    #: (tx) -> whether a random number can be drawn in front of the graph
    may_draw: Any = lambda self, tx: False
    #: (tx, class, source, low, high, finite) -> the symbolic number for one that is drawn
    draw: Any = None
    #: (tx, symbolic number) -> whether it is known in front of the graph
    is_of_inputs: Any = None
    #: (symbolic number) -> its constant; guards that it has this value.
    specialise: Any = None


def specialised(tracker: Any) -> Any:
    """A number that changes as the constant that it is in this call, which is guarded; any other tracker as it is."""
    return TENSOR.specialise(tracker) if type(tracker) is SymbolicVariable else settled(tracker)


def settled(tracker: Any) -> Any:
    """The same, but symbols stay what they are."""
    return tracker.constant() if type(tracker) is ChangingVariable else tracker


TENSOR = TensorLayer()


def _strict(handler: Any, what: str) -> Any:
    """A handler that does not look at keyword arguments refuses them: none is ever overlooked."""

    def refuse(tx: Any, first: Any, *rest: Any) -> Any:
        if rest[-1] and not _takes_keywords(handler):
            raise GraphBreak("unsupported_builtin_method", f"{what} with the keyword arguments {', '.join(rest[-1])}")
        return handler(tx, first, *rest)

    return refuse


@functools.cache
def _takes_keywords(handler: Any) -> bool:
    code = getattr(handler, "__code__", None)
    return code is None or any(i.opname.startswith("LOAD_") and "kwargs" in (i.argval if type(i.argval) is tuple else (i.argval,))
                               for i in dis.get_instructions(code))  # a tuple: two loads in one, on CPython 3.13


def handles(*functions: Any) -> Any:
    """Register the decorated handler(tx, args, kwargs) for each of ``functions``."""

    def register(handler: Any) -> Any:
        for fn in functions:
            HANDLERS[id(fn)] = _strict(handler, getattr(fn, "__name__", str(fn)))
            _ALIVE.append(fn)
        return handler

    return register


def method(cls: type, *names: str) -> Any:
    def register(handler: Any) -> Any:
        for name in names:
            METHODS[cls, name] = _strict(handler, name)
        return handler

    return register


def constructs(*classes: type) -> Any:
    def register(handler: Any) -> Any:
        for cls in classes:
            CLASSES[cls] = _strict(handler, cls.__name__)
        return handler

    return register


# Modules of C functions whose reason is known better: the first part of the module's name -> reason.
_FOREIGN = {
    "numpy": "numpy_call", "random": "random_call", "_random": "random_call", "io": "io_call", "_io": "io_call", "posix": "io_call",
    "nt": "io_call", "socket": "io_call", "_socket": "io_call", "time": "io_call", "select": "io_call", "mmap": "io_call",
}


# Modules of C functions of which most are known: what is met there is one that is not, or a form of its call.
_OURS = frozenset((None, "builtins", "math", "_operator", "operator", "itertools", "_functools", "functools", "_collections",
                   "collections", "_abc"))


def unknown(what: str, *modules: str | None, otherwise: str = "unknown_c_function") -> GraphBreak:
    """The break for code in C of which nothing is known but the modules of its function and class."""
    for module in modules:
        if not isinstance(module, str):  # of a class in C that keeps its instances' ``__module__`` under the name
            continue
        if module.startswith("numpy.random"):
            return GraphBreak("random_call", what)
        reason = _FOREIGN.get(module.partition(".")[0])
        if reason is not None:
            return GraphBreak(reason, what)
    ours = otherwise == "unknown_c_function" and any(module in _OURS for module in modules)
    return GraphBreak("unsupported_builtin_method" if ours else otherwise, what)
