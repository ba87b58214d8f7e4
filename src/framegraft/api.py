"""The public interface: compile, optimize, run, disable and what goes with them."""

from __future__ import annotations

import atexit
import copy
import functools
import inspect
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad

from . import _native
from .backends.registry import make_backend
from .bytecode.encode import in_order
from .collector import Waiting
from .errors import GraphBreak
from .model.dispatch import handles
from .run import names, recompiles, records, skip, stance
from .run.codes import CodeTable
from .run.names import InstalledName
from .tensor import marks
from .tensor.devices import only_devices

_COMPILED_CODES = CodeTable()
_CONTEXTS: dict[tuple, Context] = {}


@functools.cache
def _inside() -> Any:
    """All that traces and emits: loaded when the first frame is captured, so that importing this package is quick.

    What is loaded lives as long as the process: the garbage collector would find nothing.
    """
    with Waiting():
        from . import inside  # noqa: PLC0415
    return inside


class Context:
    """What an entry was compiled for: the backend and the options. One object for each combination."""

    def __init__(self, compiler: Any, fullgraph: bool, dynamic: bool | None) -> None:
        self.compiler = compiler
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        # (code, ids of its globals and its caller's, level) -> the name of a function for what comes behind a break, while it is in use
        self.resumes: weakref.WeakValueDictionary[tuple, InstalledName] = weakref.WeakValueDictionary()

    def miss(self, compiled: Any, args: tuple) -> Any:
        """Called by the native core when no entry fits. An error in the rest of a frame is raised by that, inside of its blocks."""
        fn = compiled.fn if isinstance(compiled, _native.CompiledFunction) else compiled
        try:
            return self._entry(compiled, fn, args)
        except BaseException as error:
            entry = _inside().raising(self, fn, error)
            if entry is None:
                raise
            return entry

    def _entry(self, compiled: Any, fn: Any, args: tuple) -> Any:
        """An entry for these arguments; None: the function runs as it is written."""
        code = fn.__code__
        if _operations_are_watched() or skip.builtins_replaced():
            return None
        if not isinstance(compiled, _native.CompiledFunction) and (how := skip.frame_skip(code)):
            _native.set_skip(code, how)
            return None
        if stance.current() != "default":
            entries = [e for e in _native.cache_entries(code) if e.ctx is self]
            return stance.refuse(fn, lambda: recompiles.reasons(fn, entries, args))
        _COMPILED_CODES[code] = 1
        old = _native.set_mode(2, None, None)
        try:
            return _inside().convert(self, fn, args)
        finally:
            _native.set_mode(*old)


def _operations_are_watched() -> bool:
    """Whether a mode, a transform of torch.func or a ``__torch_dispatch__`` would see the operations of the trace itself, or forward
    mode is on, of which not all compilers' code knows."""
    functorch: Any = torch._C._functorch  # type: ignore[attr-defined]
    return bool(torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack() and not only_devices()
                or functorch.maybe_current_level() is not None or forward_ad._current_level >= 0
                or torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.FuncTorchDynamicLayerBackMode))


def context_for(backend: Any, fullgraph: bool, dynamic: bool | None, mode: Any = None, options: Any = None) -> Context:
    compiler = make_backend(backend, mode=mode, options=options)
    key = (id(compiler), fullgraph, dynamic)
    found = _CONTEXTS.get(key)
    if found is None or found.compiler is not compiler:
        found = _CONTEXTS[key] = Context(compiler, fullgraph, dynamic)
    return found


def compile(  # noqa: A001 - the name that users know
    fn: Any = None,
    *,
    backend: Any = "inductor",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """A drop-in for ``torch.compile``.

    ``fn`` is a function, a bound method, a callable object or an ``nn.Module``; without it, a decorator is returned. With
    ``fullgraph`` a graph break raises ``framegraft.exc.Unsupported``; with ``disable`` the object comes back as it is.
    """
    if dynamic not in (None, True, False):
        raise TypeError(f"dynamic must be None, True or False, not {dynamic!r}")
    if fullgraph not in (True, False):
        raise TypeError(f"fullgraph must be True or False, not {fullgraph!r}")
    if fn is None:
        return functools.partial(compile, backend=backend, fullgraph=fullgraph, dynamic=dynamic, mode=mode, options=options,
                                 disable=disable)
    if disable:
        return fn
    return _compile_object(context_for(backend, fullgraph, dynamic, mode, options), fn)


def _compile_object(ctx: Context, fn: Any) -> Any:
    if isinstance(fn, _native.CompiledFunction):
        fn = fn.fn
    if isinstance(fn, torch.nn.Module):
        return OptimizedModule(fn, ctx)
    if isinstance(fn, types.FunctionType):
        return _native.CompiledFunction(fn, ctx, ctx.miss)
    if isinstance(fn, types.MethodType):
        return types.MethodType(_compile_object(ctx, fn.__func__), fn.__self__)
    if isinstance(fn, type):
        if not issubclass(fn, torch.nn.Module):
            raise TypeError(f"fn must be a function, method, callable object or nn.Module, not the class {fn.__name__}")
        fn.forward = _compile_object(ctx, fn.forward)
        return fn
    if not callable(fn):
        raise TypeError(f"fn must be callable, not a {type(fn).__name__}")

    def call_object(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        value = getattr(fn, name, None)
        if isinstance(value, str):
            setattr(call_object, name, value)
    return _native.CompiledFunction(call_object, ctx, ctx.miss)


class OptimizedModule(torch.nn.Module):
    """A compiled ``nn.Module``: calls are captured; all else is the original module's (``_orig_mod``).

    Parameters, buffers and submodules have the names that they have there, also in a module that this one is a part of: a ``state_dict``
    is the same with and without compiling. Methods of ``nn.Module`` are called on the original, whose class may have its own.
    """

    _orig_mod: torch.nn.Module

    def __init__(self, module: torch.nn.Module, ctx: Context) -> None:
        # torch.nn.Module.__init__ would set attributes through __setattr__, which goes to the module inside.
        self.__dict__["_orig_mod"] = module
        object.__setattr__(self, "_fg_ctx", ctx)
        # With a code object of its own: entries, limits and what is skipped are each module's.
        call = types.FunctionType(_call_module.__code__.replace(), globals(), "_call_module")
        call.__dict__.update(_call_module.__dict__)
        object.__setattr__(self, "_fg_call", _native.CompiledFunction(call, ctx, ctx.miss))

    # self._fg_call(self._orig_mod, *args, **kwargs)
    __call__ = _native.ModuleCall("_fg_call", "_orig_mod")

    @property
    def forward(self) -> Any:  # type: ignore[override]
        """What the module has now, compiled: what a program puts in its place may call it (``m.forward = wrapped(m.forward)``)."""
        return _compile_object(self._fg_ctx, self.__dict__["_orig_mod"].forward)

    @property
    def __class__(self) -> type:  # type: ignore[override]
        """The original's: ``isinstance(compiled, nn.Linear)`` holds, and who gives the module a class of his own (parametrizations) can."""
        return self.__dict__["_orig_mod"].__class__

    @__class__.setter
    def __class__(self, cls: type) -> None:
        self.__dict__["_orig_mod"].__class__ = cls

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.__dict__["_orig_mod"])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod":
            self.__dict__[name] = value
        else:
            setattr(self.__dict__["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_orig_mod"], name)

    @property
    def training(self) -> bool:  # type: ignore[override]
        return self.__dict__["_orig_mod"].training

    @training.setter
    def training(self, mode: bool) -> None:
        self.__dict__["_orig_mod"].training = mode

    def __len__(self) -> int:
        return len(self._orig_mod)  # type: ignore[arg-type]

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]  # type: ignore[index]

    def __iter__(self) -> Any:
        return iter(self._orig_mod)  # type: ignore[call-overload]

    def __dir__(self) -> list[str]:
        return dir(self._orig_mod)

    def __repr__(self) -> str:
        return f"OptimizedModule({self._orig_mod!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        restore, (module, *wishes) = self.__reduce__()
        return restore(copy.deepcopy(module, memo), *wishes)

    def __reduce__(self) -> Any:
        ctx = self._fg_ctx
        return _restore_module, (self._orig_mod, ctx.compiler, ctx.fullgraph, ctx.dynamic)


def _of_original(name: str) -> Callable[..., Any]:
    """The method of that name, called on the original module; one that returns its module returns the compiled one."""

    @functools.wraps(getattr(torch.nn.Module, name))
    def method(self: OptimizedModule, *args: Any, **kwargs: Any) -> Any:
        module = self.__dict__["_orig_mod"]
        result = getattr(module, name)(*args, **kwargs)
        return self if result is module else result

    return method


for _name, _method in list(vars(torch.nn.Module).items()):
    if isinstance(_method, types.FunctionType) and not _name.startswith("__") and _name not in vars(OptimizedModule):
        setattr(OptimizedModule, _name, _of_original(_name))


def _call_module(module: Any, *args: Any, **kwargs: Any) -> Any:
    return module(*args, **kwargs)


def _shown(module: Any, *args: Any) -> Any:
    """What the module's class has under ``forward``, if anything. No descriptor is asked: it may be the program's."""
    return next((base.__dict__["forward"] for base in type(module).__mro__ if "forward" in base.__dict__), None)


_call_module._framegraft_shows = _shown  # type: ignore[attr-defined]


def _restore_module(module: Any, compiler: Any, fullgraph: bool, dynamic: bool | None) -> Any:
    return _compile_object(context_for(compiler, fullgraph, dynamic), module)


class _Mode:
    """A decorator and context manager that sets this thread's mode."""

    def __init__(self, mode: int, ctx: Any = None) -> None:
        self._mode = mode
        self._ctx = ctx
        self._saved: list = []

    def __enter__(self) -> _Mode:
        ctx = self._ctx
        self._saved.append(_native.set_mode(self._mode, ctx, ctx.miss if ctx is not None else None))
        return self

    def __exit__(self, *exc_info: object) -> None:
        _native.set_mode(*self._saved.pop())


# A mode that nobody leaves ends with the program: nothing is captured of what the interpreter does when it takes itself apart.
atexit.register(_native.set_mode, 0, None, None)


class _Optimize(_Mode):
    def __init__(self, ctx: Context) -> None:
        super().__init__(1, ctx)

    def __call__(self, fn: Any) -> Any:
        return _compile_object(self._ctx, fn)


def optimize(backend: Any = "inductor", *, nopython: bool = False, dynamic: bool | None = None) -> _Optimize:
    """Capture with ``backend``: as a decorator, or ``with optimize(backend): ...`` for every frame called inside."""
    return _Optimize(context_for(backend, nopython, dynamic))


class _Run(_Mode):
    def __call__(self, fn: Any) -> Any:
        @functools.wraps(fn)
        def running(*args: Any, **kwargs: Any) -> Any:
            with _Run(3):
                return fn(*args, **kwargs)

        return running


def run(fn: Any = None) -> Any:
    """Use what was compiled, compile nothing new: a context manager, or a decorator of ``fn``."""
    return _Run(3) if fn is None else _Run(3)(fn)


class _Disable(_Mode):
    reason: str | None = None

    def __call__(self, fn: Any) -> Any:
        return disable(fn, reason=self.reason)


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Keep ``fn``, and all that it calls, out of every capture; without ``fn`` a context manager, and a decorator.

    Of a module, this gives a module that stands for it; of a class whose instances can be called, the class: it is their calls that
    are kept out.

    recursive: with False, what ``fn`` calls is captured as if it was called from outside. ``fn`` must be a Python function then.
    reason: told where a call of ``fn`` breaks a graph.
    """
    if reason is not None and not isinstance(reason, str):
        raise TypeError(f"reason must be a text or None, not a {type(reason).__name__}")
    if fn is None:
        if not recursive:
            return functools.partial(disable, recursive=False, reason=reason)
        mode = _Disable(2)
        mode.reason = reason
        return mode
    if isinstance(fn, _native.CompiledFunction):
        fn = fn.fn
    if not callable(fn):
        raise TypeError(f"fn must be callable, not a {type(fn).__name__}")
    if not recursive:
        if not isinstance(fn, types.FunctionType):
            raise TypeError(f"fn must be a Python function where recursive is False, not a {type(fn).__name__}")
        _native.set_skip(fn.__code__, True)
        fn._framegraft_disabled = reason or True  # type: ignore[attr-defined]
        return fn
    if isinstance(fn, torch.nn.Module):
        return DisabledModule(fn._orig_mod if isinstance(fn, OptimizedModule) else fn)
    if isinstance(fn, type) and any("__call__" in base.__dict__ for base in fn.__mro__):
        fn.__call__ = disable(fn.__call__, reason=reason)
        return fn

    @functools.wraps(fn)
    def disabled(*args: Any, **kwargs: Any) -> Any:
        with _Disable(2):
            return fn(*args, **kwargs)

    disabled._framegraft_disabled = reason or True  # type: ignore[attr-defined]
    return disabled


class DisabledModule(OptimizedModule):
    """A module whose calls are kept out of every capture: it stands for the original, as a compiled one does."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.__dict__["_orig_mod"] = module

    @disable
    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self.__dict__["_orig_mod"](*args, **kwargs)

    @property
    def forward(self) -> Any:  # type: ignore[override]
        return disable(self.__dict__["_orig_mod"].forward)

    def __repr__(self) -> str:
        return f"DisabledModule({self._orig_mod!r})"

    def __reduce__(self) -> Any:
        return disable, (self._orig_mod,)


def reset() -> None:
    """Forget everything that was compiled."""
    for code in _COMPILED_CODES:
        _native.clear_cache(code)
        _native.set_skip(code, False)
    _COMPILED_CODES.clear()
    _CONTEXTS.clear()
    records.clear()
    names.reset_counter()


def compiled_codes() -> list[types.CodeType]:
    """Every code object that may have entries."""
    return list(_COMPILED_CODES)


def is_compiling() -> bool:
    """False in eager code; a trace takes it for True, as it does torch.compiler.is_compiling()."""
    return False


def graph_break(msg: str = "") -> None:
    """Break the graph here; does nothing in eager code. ``msg`` is told with the break."""


def allow_in_graph(fn: Any) -> Any:
    """Put calls of ``fn`` into the graph as one node, without looking inside. ``fn`` must be pure on tensors."""
    if not callable(fn):
        raise TypeError(f"fn must be callable, not a {type(fn).__name__}")
    handles(fn)(lambda tx, args, kwargs: _inside().call_in_graph(tx, fn, args, kwargs))
    return fn


def disallow_in_graph(fn: Any) -> Any:
    """Break the graph at calls of ``fn``."""
    if not callable(fn):
        raise TypeError(f"fn must be callable, not a {type(fn).__name__}")

    def refuse(tx: Any, args: list, kwargs: dict) -> Any:
        raise GraphBreak("disallowed_function", getattr(fn, "__qualname__", repr(fn)))

    handles(fn)(refuse)
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Call ``fn`` once, at capture, and take its result for a constant."""
    if not callable(fn):
        raise TypeError(f"fn must be callable, not a {type(fn).__name__}")
    handles(fn)(lambda tx, args, kwargs: _inside().evaluated(fn, args, kwargs))
    return fn


def innermost_fn(fn: Any) -> Any:
    """The user's function inside a compiled one."""
    if isinstance(fn, OptimizedModule):
        return fn._fg_call.fn
    if isinstance(fn, types.MethodType):
        fn = fn.__func__
    while isinstance(fn, _native.CompiledFunction):
        fn = fn.fn
    return fn


class CacheEntry:
    """One guarded code: ``check_fn`` (callable on the dict of locals) and ``code``."""

    def __init__(self, entry: Any) -> None:
        self._entry = entry
        self.check_fn = entry.info.check_fn
        self.graph_module = entry.info.graph_module

    @functools.cached_property
    def code(self) -> types.CodeType:
        """The code that runs where the guards hold, with its instructions in the order in which they were emitted."""
        return in_order(self._entry.code)

    def __repr__(self) -> str:
        return f"<CacheEntry of {self._entry.code.co_name}, {self.check_fn.count} guards>"


def _debug_get_cache_entry_list(fn: Any) -> list[CacheEntry]:
    """Cache entries of a function or code object, most recent first."""
    code = fn if isinstance(fn, types.CodeType) else innermost_fn(fn).__code__
    return [CacheEntry(e) for e in _native.cache_entries(code)]


def break_reasons() -> list[str]:
    """Every graph break since the last ``reset``, as text."""
    return [str(b) for b in records.BREAKS]


def stats() -> dict[str, int]:
    """Counts of graphs, operations in them and graph breaks since the last ``reset``."""
    return dict(records.STATS)


set_stance = stance.set_stance
mark_dynamic, maybe_mark_dynamic = marks.mark_dynamic, marks.maybe_mark_dynamic
mark_static, mark_unbacked = marks.mark_static, marks.mark_unbacked
register_bytecode_hook = records.register_bytecode_hook
