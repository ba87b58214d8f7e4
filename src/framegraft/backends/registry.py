"""Backends by name: ``compiler(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> callable``.

Backends of the package are loaded when they are first asked for (AOTAutograd and inductor take seconds to import).
Distributions may offer theirs through the entry-point group ``torch_dynamo_backends``, as for ``torch.compile``.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import inspect
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..errors import BackendCompilerFailed, ConfigError, InvalidBackend

Compiler = Callable[..., Any]

ENTRY_POINT_GROUP = "torch_dynamo_backends"

# name -> (module of this package, attribute, tags)
_BUILTIN: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "eager": ("eager", "eager", ()),
    "aot_eager": ("aot", "aot_eager", ()),
    "aot_eager_decomp_partition": ("aot_decomp", "aot_eager_decomp_partition", ("debug",)),
    "inductor": ("inductor", "inductor", ()),
    "ts": ("torchscript", "ts", ()),
    "print": ("eager", "print_graph", ("debug",)),
}

TRACING = frozenset(("aot_eager", "aot_eager_decomp_partition", "inductor"))  # which trace the graph: no tensor is a number there
_compilers: dict[str, Compiler] = {}
_tags: dict[str, tuple[str, ...]] = {name: entry[2] for name, entry in _BUILTIN.items()}
_lock = threading.Lock()


def register_backend(
    compiler: Compiler | str | None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Any:
    """Make a compiler known by a name.

    All of these work: ``@register_backend``, ``@register_backend(name="mine", tags=("debug",))``,
    ``@register_backend("mine")``, ``register_backend(fn)`` and ``register_backend(fn, name="mine")``.

    Returns:
        The compiler itself, or a decorator when none was given.

    Raises:
        InvalidBackend: the object is not callable, has no name, or the name is taken by another compiler.
    """
    if compiler is None or isinstance(compiler, str):
        return functools.partial(register_backend, name=name or compiler, tags=tags)
    if not callable(compiler):
        raise InvalidBackend(f"a backend must be callable, not {type(compiler).__name__}")
    known_as = name or getattr(compiler, "__name__", None)
    if not known_as:
        raise InvalidBackend(f"{compiler!r} has no __name__; give one: register_backend(compiler, name=...)")
    with _lock:
        taken = _compilers.get(known_as)
        if known_as in _BUILTIN or (taken is not None and taken is not compiler):
            raise InvalidBackend(f"there is a backend {known_as!r} already")
        _compilers[known_as] = compiler
        _tags[known_as] = tuple(tags)
    return compiler


def list_backends(exclude_tags: Iterable[str] | None = ("debug",)) -> list[str]:
    """Names that ``backend=`` takes, sorted, without those that carry one of ``exclude_tags``."""
    excluded = set(exclude_tags or ())
    return sorted(name for name in _all_names() if not excluded.intersection(_tags.get(name, ())))


def backend_origin(name: str) -> tuple[str, str]:
    """Where a backend comes from, and the first line of its documentation, as far as it is loaded or the package's own."""
    if name in _BUILTIN:
        origin = "framegraft"
        doc = getattr(lookup_backend(name), "__doc__", None)
    elif name in _compilers:
        origin = getattr(_compilers[name], "__module__", "") or "this program"
        doc = getattr(_compilers[name], "__doc__", None)
    else:
        entry = _entry_points()[name]
        origin, doc = (entry.dist.name if entry.dist is not None else entry.value), None
    return origin, (doc or "").strip().partition("\n")[0]


def lookup_backend(backend: str | Compiler) -> Compiler:
    """The compiler called ``backend``; an object that is callable is its own compiler.

    Raises:
        InvalidBackend: no backend of that name, its import failed, or the object is not callable.
    """
    if not isinstance(backend, str):
        if not callable(backend):
            raise InvalidBackend(f"backend= takes a name or a callable, not {type(backend).__name__} ({backend!r})")
        return backend
    found = _compilers.get(backend)
    if found is not None:
        return found
    try:
        if backend in _BUILTIN:
            module, attribute, _ = _BUILTIN[backend]
            found = getattr(importlib.import_module(f"{__package__}.{module}"), attribute)
        elif backend in _entry_points():
            found = _entry_points()[backend].load()
    except Exception as error:
        raise InvalidBackend(f"backend {backend!r} could not be imported: {error}") from error
    if found is None:
        names = sorted(_all_names())
        near = difflib.get_close_matches(backend, names, n=2)
        offer = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
        raise InvalidBackend(f"no backend {backend!r}{offer} There are {', '.join(names)}")
    if not callable(found):
        raise InvalidBackend(f"backend {backend!r} is {type(found).__name__}, which is not callable")
    with _lock:
        return _compilers.setdefault(backend, found)


def make_backend(
    backend: str | Compiler,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    dynamic: bool | None = None,
) -> Compiler:
    """The compiler for ``compile(backend=, mode=, options=)``, checked at once.

    ``inductor`` understands both, as in ``torch.compile``. Other backends get ``mode=`` and ``options=`` as keywords if
    they were given.

    Raises:
        InvalidBackend: see ``lookup_backend``.
        ConfigError: both mode and options, or one that inductor does not know.
    """
    if mode is not None and options is not None:
        raise ConfigError("give mode or options, not both")
    compiler = lookup_backend(backend)
    if backend == "inductor":
        return compiler.configured(mode, options, dynamic)  # type: ignore[attr-defined]
    keywords: dict[str, Any] = {}
    if mode not in (None, "default"):
        keywords["mode"] = mode
    if options:
        keywords["options"] = dict(options)
    return functools.partial(compiler, **keywords) if keywords else compiler


def backend_name(compiler: Compiler) -> str:
    """What the user knows a compiler by."""
    while isinstance(compiler, functools.partial):
        compiler = compiler.func
    for name, known in _compilers.items():
        if known is compiler:
            return name
    for attribute in ("compiler_name", "__qualname__", "__name__"):
        name = getattr(compiler, attribute, None)
        if isinstance(name, str):
            return name
    return type(compiler).__qualname__


def call_backend(compiler: Compiler, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
    """Compile one graph.

    Args:
        compiler: takes ``(gm, example_inputs)``, or ``(gm)`` alone.
        gm: a ``torch.fx.GraphModule`` whose placeholders carry a fake tensor in ``node.meta["example_value"]``.
        example_inputs: one value per placeholder, in order.

    Returns:
        A callable of as many arguments as the graph has placeholders, which returns a tuple or list.

    Raises:
        BackendCompilerFailed: the compiler raised (its error is ``__cause__``) or returned no callable.
    """
    try:
        with _own_numbers(), _surroundings(compiler, gm, example_inputs):
            compiled = compiler(gm) if _takes_graph_only(compiler) else compiler(gm, example_inputs)
    except BackendCompilerFailed:
        raise
    except Exception as error:
        raise BackendCompilerFailed(backend_name(compiler), f"{type(error).__name__}: {error}") from error
    if not callable(compiled):
        raise BackendCompilerFailed(
            backend_name(compiler),
            f"it returned {type(compiled).__name__}, which is not callable",
            hint="A compiler returns a callable of the graph's inputs, for example gm.forward.",
        )
    return compiled


SURROUNDINGS: list[Callable[[Any, list[Any]], Any]] = []  # of compilers that are not ours; set by tracing


def _surroundings(compiler: Compiler, gm: Any, example_inputs: list[Any]) -> Any:
    """Ours make their own."""
    ours = str(getattr(compiler, "__module__", "")).startswith(f"{_ROOT}.")
    return SURROUNDINGS[0](gm, example_inputs) if SURROUNDINGS and not ours else contextlib.nullcontext()


_ROOT = __name__.partition(".")[0]


@contextlib.contextmanager
def _own_numbers() -> Iterator[None]:
    """Random numbers that a compiler draws are none of the program's. Torch's own are put back where the graph was traced.

    Not where other threads run, which may draw meanwhile: they would draw the same numbers once more.
    """
    if threading.active_count() > 1:
        yield
        return
    state = random.getstate()
    arrays: Any = sys.modules.get("numpy.random")
    drawn = arrays.get_state(legacy=False) if arrays is not None else None
    try:
        yield
    finally:
        random.setstate(state)
        if arrays is not None:
            arrays.set_state(drawn)


def _takes_graph_only(compiler: Compiler) -> bool:
    try:
        signature = inspect.signature(compiler)
    except (TypeError, ValueError):  # a C function without a signature
        return False
    try:
        signature.bind(None, None)
    except TypeError:
        try:
            signature.bind(None)
        except TypeError:
            return False
        return True
    return False


@functools.cache
def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _all_names() -> set[str]:
    return {*_BUILTIN, *_compilers, *_entry_points()}
