"""throw() and close() of generators that wait for another iterator in a ``yield from``."""

import torch

import framegraft

from .differential import differential


def told(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__, error.args, type(error.__context__).__name__


def answers(log):
    try:
        yield 1
        yield 2
    except ValueError as error:
        log.append(("inner", error.args))
        yield 3
    except StopIteration:
        return 4
    finally:
        log.append("left inner")
    return 5


def hands_on(log, inner):
    try:
        got = yield from inner
        log.append(("got", got))
    except Exception as error:
        log.append(("outer", type(error).__name__, error.args))
        got = 6
    finally:
        log.append("left outer")
    yield got


@differential(lambda: (torch.ones(2), []), graphs=1)
def test_what_is_thrown_in_reaches_the_inner_generator(x, log):
    g = hands_on(log, hands_on(log, answers(log)))
    seen = [next(g), g.throw(ValueError(1)), next(g), told(lambda: next(g))]
    g = hands_on(log, answers(log))
    seen += [next(g), g.throw(StopIteration("stop")), told(lambda: next(g))]
    g = hands_on(log, answers(log))
    seen += [next(g), g.throw(KeyError, "key"), told(lambda: next(g))]
    g = hands_on(log, answers(log))
    return x + 1, [*seen, told(lambda: g.throw(ValueError, "early"))]


@differential(lambda: (torch.ones(2), []), graphs=1)
def test_the_inner_generator_is_closed_first(x, log):
    for inner in (answers(log), [1, 2], range(3), map(abs, [1, 2]), iter({"a": 1})):
        g = hands_on(log, inner)
        log.append(next(g))
        g.close()
        log.append(told(lambda: next(g)))
    g = hands_on(log, answers(log))
    next(g)
    try:
        g.throw(GeneratorExit)
    except GeneratorExit as error:
        log.append(error.args)
    return x + 1


def resists():
    try:
        yield 1
    except GeneratorExit:
        yield 2


def fails(kind):
    try:
        yield 1
    finally:
        raise kind("failed")


@differential(lambda: (torch.ones(2), []), graphs=1)
def test_inner_generators_that_do_not_close(x, log):
    for inner in (resists(), fails(ValueError), fails(StopIteration), fails(KeyError)):
        g = hands_on(log, inner)
        next(g)
        log.append(told(g.close))
    for inner in (resists(), fails(ValueError), fails(StopIteration)):
        g = hands_on(log, inner)
        next(g)
        log.append(told(lambda: g.throw(GeneratorExit)))
        g.close()
    return x + 1


@differential(lambda: (torch.ones(2), []), graphs=1)
def test_iterators_without_throw(x, log):
    for inner in ([1, 2], range(3), {1: 2}):
        for error in (ValueError, KeyError(2)):
            g = hands_on(log, inner)
            next(g)
            log.append(g.throw(error))
    return x + 1


class Delegate:
    """An iterator with the methods of a generator."""

    def __init__(self, log):
        self.log, self.count = log, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.count += 1
        if self.count > 2:
            raise StopIteration("over")
        return self.count

    def send(self, value):
        self.log.append(("send", value))
        return value

    def throw(self, kind, *rest):
        self.log.append(("throw", kind if isinstance(kind, type) else type(kind), rest))
        if kind is StopIteration:
            raise StopIteration("thrown")
        if kind is KeyError:
            raise IndexError("other")
        return "thrown"

    def close(self):
        self.log.append("close")
        if self.count == 2:
            raise ValueError("in close")


@differential(lambda: (torch.ones(2), []))
def test_iterators_of_the_programs_own(x, log):
    g = hands_on(log, Delegate(log))
    seen = [next(g), g.send(5), g.throw(ValueError(1)), g.throw(ValueError, 2), next(g), next(g)]
    g.close()
    for kind in (StopIteration, KeyError):
        g = hands_on(log, Delegate(log))
        seen += [next(g), g.throw(kind)]
    for count in (1, 2):
        g = hands_on(log, Delegate(log))
        for _ in range(count):
            next(g)
        log.append(told(g.close))
    return x + 1, seen


def left_open(inner):
    yield from inner


@differential(lambda: (torch.ones(2), []))
def test_an_iterator_of_the_programs_own_is_closed_when_its_generator_dies(x, log):
    g = left_open(Delegate(log))
    y = x + next(g)
    return y * 2


def asks_itself(x):
    def inner():
        try:
            yield 1
        except ValueError:
            yield told(lambda: held[0].throw(KeyError(1))), told(held[0].close), told(lambda: next(held[0]))

    def outer():
        yield from inner()

    held = [outer()]
    next(held[0])
    return x + 1, held[0].throw(ValueError)


def test_a_generator_that_is_running_is_not_thrown_into():
    x = torch.ones(2)
    assert framegraft.compile(asks_itself, backend="eager", fullgraph=True)(x)[1] == asks_itself(x)[1]


def counts():
    yield 1
    yield 2


def refused(log, generator, *given):
    try:
        log.append(generator.throw(*given))
    except TypeError as error:
        log.append(str(error))


@differential(lambda: (torch.ones(2), []), graphs=1)
def test_what_cannot_be_thrown(x, log):
    g = counts()
    next(g)
    for given in (("abc",), (0,), (list,), (ValueError(1), 2), (None, 1)):
        refused(log, g, *given)
        h = hands_on(log, counts())
        next(h)
        refused(log, h, *given)
        h.close()
    return x + next(g), g.close()


def handles(log, inner):
    try:
        got = yield from inner
    except TypeError:
        log.append("handled")
        got = 3
    yield got


@differential(lambda: (torch.ones(2), []))
def test_a_variable_holds_the_inner_generator_behind_a_break(x, log):
    g = handles(log, answers(log))
    seen = [next(g)]
    print("break")
    seen.append(g.throw("no exception"))
    log.append("last")
    return x + 1, seen
