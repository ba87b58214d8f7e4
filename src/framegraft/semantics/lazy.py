"""itertools on trackers: iterators that draw from others when they are asked, as CPython's itertoolsmodule.c has them."""

from __future__ import annotations

import itertools
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import METHODS, constructs, handles
from ..model.source import BUILTINS, pinned
from ..model.value import (
    NONE,
    AskedIterator,
    CombinedIteratorVariable,
    ConstantVariable,
    GeneratorVariable,
    ListVariable,
    ObjectVariable,
    SymbolicVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..polyfills import iterators as bodies
from . import (
    attributes,
    calls,
    constructors,
    containers,
    core,
    folding,
    functions,
    inlining,
    iteration,
    iterator_methods,  # noqa: F401 - the methods of generators come first
    truth,
    )
from .wrapping import wrap_constant


class LazyIteratorVariable(GeneratorVariable):
    """An iterator of itertools: a generator over its polyfill, rebuilt by ``cls(*args, **kwargs)`` until it is started."""

    __slots__ = ("cls", "args", "kwargs")

    def __init__(self, frame: Any, cls: type, args: list, kwargs: dict) -> None:
        super().__init__(frame)
        self.cls = cls
        self.args = args
        self.kwargs = kwargs

    def python_type(self) -> type:
        return self.cls


class SequenceIteratorVariable(LazyIteratorVariable):
    """``iter(obj)`` of an object with ``__getitem__`` alone."""

    __slots__ = ()


for _cls in (LazyIteratorVariable, SequenceIteratorVariable):
    for _name in ("__iter__", "__next__"):
        METHODS[_cls, _name] = METHODS[GeneratorVariable, _name]


def make(tx: Any, cls: type, body: Any, parameters: list, args: list, kwargs: dict | None = None,
         kind: type[LazyIteratorVariable] = LazyIteratorVariable) -> LazyIteratorVariable:
    """An iterator of class ``cls`` that runs ``body(*parameters)``; ``args`` and ``kwargs`` build the real one."""
    code = body.__code__
    scope = tx.state.scope(body.__globals__, pinned(body).child("FGLOBALS"), BUILTINS)
    bound = dict(zip(code.co_varnames[: code.co_argcount], parameters, strict=True))
    generator = inlining.run_inline(tx, code, scope, bound, [], body)
    assert isinstance(generator, GeneratorVariable)
    tx.state.generators.remove(generator)  # leaves nothing to be done when it dies
    return kind(generator.frame, cls, args, kwargs or {})


class _Sequence:
    def __getitem__(self, index: int) -> int:
        return index


_BY_NUMBER = type(iter(_Sequence()))
_ENDS = (IndexError, StopIteration)


def by_number(tx: Any, obj: VariableTracker) -> VariableTracker:
    return make(tx, _BY_NUMBER, bodies.sequence, [obj, wrap_constant(_ENDS)], [obj], kind=SequenceIteratorVariable)


iteration.BY_NUMBER.append(by_number)


def _iterator_of(tx: Any, obj: VariableTracker) -> VariableTracker:
    """PyObject_GetIter, once: the loops in ``bodies`` do not ask the ``__iter__`` of a program's own iterator again."""
    made = realize(iteration.get_iter(tx, obj), tx.state)
    return CombinedIteratorVariable(AskedIterator, [made]) if isinstance(made, ObjectVariable) else made


def _refuse(cls: type, args: list, kwargs: dict, counts: tuple[int, ...], names: tuple[str, ...] = ()) -> None:
    if len(args) not in counts or not set(kwargs) <= set(names):
        raise GraphBreak("raised_exception", f"itertools.{cls.__name__}() with other arguments than it takes")


@constructs(itertools.chain)
def make_chain(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    _refuse(cls, [], kwargs, (0,))
    return make(tx, cls, bodies.chain, [TupleVariable(list(args))], args)


def chain_from_iterable(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """chain.from_iterable: cannot be rebuilt by its class, so it must stay in the trace."""
    _refuse(itertools.chain, args, kwargs, (1,))
    return _only_traced(tx, itertools.chain, bodies.chain, [_iterator_of(tx, args[0])])


calls.CLASS_METHODS[itertools.chain, "from_iterable"] = chain_from_iterable


@constructs(itertools.islice)
def make_islice(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    _refuse(cls, args, kwargs, (2, 3, 4))
    numbers = [core.need_constant(a, "islice() argument") for a in args[1:]]
    folding.fold(lambda: itertools.islice((), *numbers) and None, [])  # the errors it raises
    start, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (numbers[0] or 0, numbers[1],
                                                                      (numbers[2] if len(numbers) > 2 else None) or 1)
    iterator = _iterator_of(tx, args[0])
    return make(tx, cls, bodies.islice, [iterator, constant(start), constant(stop), constant(step)], [iterator, *args[1:]])


@constructs(itertools.accumulate)
def make_accumulate(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    _refuse(cls, args, kwargs, (1, 2), ("func", "initial"))
    iterator = _iterator_of(tx, args[0])
    function = args[1] if len(args) > 1 else kwargs.get("func", NONE)
    initial = kwargs.get("initial", NONE)
    has_initial = not (isinstance(initial, ConstantVariable) and initial.value is None)
    return make(tx, cls, bodies.accumulate, [iterator, function, constant(has_initial), initial], [iterator, function],
                {"initial": initial})


@constructs(itertools.repeat)
def make_repeat(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    _refuse(cls, args, kwargs, (1, 2), ("times",))
    if len(args) < 2 and "times" not in kwargs:
        return make(tx, cls, bodies.repeat, args, args)
    times = args[1] if len(args) > 1 else kwargs["times"]
    return make(tx, cls, bodies.given, [TupleVariable([args[0]] * containers.index_of(tx, times))], [args[0], times])


@constructs(itertools.count)
def make_count(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    _refuse(cls, args, kwargs, (0, 1, 2), ("start", "step"))
    both = [*args, *[kwargs.get(n, constant(i)) for i, n in enumerate(("start", "step"))][len(args):]]
    if not all(isinstance(a, ConstantVariable) and type(a.value) in (int, float) or isinstance(a, SymbolicVariable) and a.cls is int
               for a in both):
        raise GraphBreak("unsupported_iterator", "itertools.count() of something other than numbers")
    return make(tx, cls, bodies.count, both, both)


def _over_iterator(cls: type, body: Any, function_first: bool) -> None:
    @constructs(cls)
    def make_it(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
        _refuse(cls, args, kwargs, (2 if function_first else 1,))
        parameters = [*args[:-1], _iterator_of(tx, args[-1])]
        return make(tx, cls, body, parameters, parameters)


_over_iterator(itertools.cycle, bodies.cycle, False)
_over_iterator(itertools.pairwise, bodies.pairwise, False)
_over_iterator(itertools.takewhile, bodies.takewhile, True)
_over_iterator(itertools.dropwhile, bodies.dropwhile, True)
_over_iterator(itertools.filterfalse, bodies.filterfalse, True)
_over_iterator(itertools.starmap, bodies.starmap, True)


@constructs(itertools.product, itertools.permutations, itertools.combinations, itertools.combinations_with_replacement)
def make_combinatoric(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    """Their pools are drawn when they are made."""
    options = {k: core.need_constant(v, k) for k, v in kwargs.items()}
    pools = args if cls is itertools.product else args[:1]
    items = [iteration.unpack_iterable(tx, a) for a in pools]
    numbers = [core.need_constant(a, "length") for a in args[len(pools):]]
    try:
        count = sum(1 for _ in itertools.islice(cls(*(range(len(i)) for i in items), *numbers, **options), 100_001))
        made = [TupleVariable(list(t)) for t in cls(*items, *numbers, **options)] if count <= 100_000 else None
    except (TypeError, ValueError):
        raise GraphBreak("raised_exception", f"itertools.{cls.__name__}() raised an error") from None
    if made is None:
        raise GraphBreak("unsupported_iterator", "more than 100,000 combinations")
    rebuilt = [ListVariable(i) for i in items]
    return make(tx, cls, bodies.given, [TupleVariable(list(made))], [*rebuilt, *args[len(pools):]], kwargs)


@constructs(itertools.zip_longest)
def make_zip_longest(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    _refuse(cls, [], kwargs, (0,), ("fillvalue",))
    iterators = [_iterator_of(tx, a) for a in args]
    fill = kwargs.get("fillvalue", NONE)
    parameters = [ListVariable(list(iterators)), constant(len(iterators)), fill]
    return make(tx, cls, bodies.zip_longest, parameters, iterators, {"fillvalue": fill})


@constructs(itertools.compress)
def make_compress(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    _refuse(cls, args, kwargs, (2,))
    both = [_iterator_of(tx, a) for a in args]
    return make(tx, cls, bodies.compress, both, both)


@constructs(itertools.groupby)
def make_groupby(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    _refuse(cls, args, kwargs, (1, 2), ("key",))
    both = [_iterator_of(tx, args[0]), args[1] if len(args) > 1 else kwargs.get("key", NONE)]
    return make(tx, cls, bodies.groupby, both, both)


_GROUPER = type(next(itertools.groupby("a"))[1])


@handles(bodies.grouper)
def make_grouper(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """What groupby() gives beside a key: not rebuilt, for it belongs to a groupby() that has been started."""
    (generator,) = args
    tx.state.generators.remove(generator)  # leaves nothing to be done when it dies
    made = LazyIteratorVariable(generator.frame, _GROUPER, [], {})
    made.started = True
    return made


def _only_traced(tx: Any, cls: type, body: Any, parameters: list) -> LazyIteratorVariable:
    """An iterator that its class does not make: it must stay in the trace."""
    made = make(tx, cls, body, parameters, [])
    made.started = True
    return made


_TEE, _UNTIL = type(itertools.tee(())[0]), type(iter(int, 1))


@handles(itertools.tee)
def make_tee(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    _refuse(_TEE, args, kwargs, (1, 2))
    iterator, link = realize(iteration.get_iter(tx, args[0]), tx.state), ListVariable([])
    if isinstance(iterator, ObjectVariable):
        if attributes.special_method(tx, iterator, "__copy__") is not None:
            raise GraphBreak("unsupported_iterator", "itertools.tee() of an iterator that can be copied")
        iterator = _iterator_of(tx, iterator)  # tee_fromiterable asks again
    if isinstance(iterator, LazyIteratorVariable) and iterator.cls is _TEE:
        raise GraphBreak("unsupported_iterator", "itertools.tee() of what it gave")
    count = containers.index_of(tx, args[1]) if len(args) > 1 else 2
    if count < 0:
        raise GraphBreak("raised_exception", "itertools.tee() of fewer than no iterators")
    return TupleVariable([_only_traced(tx, _TEE, bodies.tee, [iterator, link]) for _ in range(count)])


def reversed_sequence(tx: Any, sequence: VariableTracker) -> VariableTracker:
    """reversed() of what has a length and items, and no ``__reversed__`` (CPython: reversed_new_impl)."""
    ended = TupleVariable([wrap_constant(IndexError), wrap_constant(StopIteration)])
    made = _only_traced(tx, reversed, bodies.backwards, [sequence, truth.length(tx, sequence), ended])
    made.args = [sequence]
    return made


def _sized(tx: Any, iterator: GeneratorVariable) -> VariableTracker:
    """Iterators by number ask their sequence how many items there are, until they have ended (reversed_len, iter_len)."""
    if not isinstance(iterator, LazyIteratorVariable) or iterator.cls not in (reversed, _BY_NUMBER) or iterator.finished:
        return iterator
    (sequence,) = iterator.args
    if attributes.special_method(tx, sequence, "__len__") is None:
        return iterator
    return sequence


constructors.REVERSED_SEQUENCE.append(reversed_sequence)
iteration.SIZED.append(_sized)


@handles(iter)
def handle_iter(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) == 1:
        return iteration.get_iter(tx, args[0])
    if not functions.is_callable(tx, args[0]):
        raise UserRaise(user_error(TypeError, "iter(v, w): v must be callable"))
    return _only_traced(tx, _UNTIL, bodies.until, args)
