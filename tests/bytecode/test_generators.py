"""Generators, coroutines and asynchronous generators made anew behave as the originals, when things are thrown in, too."""

import asyncio
import dis
import inspect
import types

import pytest

from .canon import again, remade


def delegate(log):
    def inner():
        try:
            got = yield 1
            log(("inner got", got))
            yield 2
        except ValueError as e:
            log(("inner caught", str(e)))
            got = yield "caught"
            log(got)
            return "inner result"
        finally:
            log("inner finally")

    try:
        result = yield from inner()
        log(("result", result))
        yield from [10, 20]
    except KeyError as e:
        log(("outer caught", e.args))
        yield "outer"
    finally:
        log("outer finally")


def drive(gen, actions):
    seen = []
    for what, value in actions:
        try:
            seen.append(gen.send(value) if what == "send" else gen.throw(value) if what == "throw" else gen.close())
        except BaseException as e:
            seen.append((type(e), e.args))
    return seen


@pytest.mark.parametrize("actions", [
    [("send", None), ("send", "x"), ("send", None), ("send", None), ("send", None)],
    [("send", None), ("throw", ValueError("v")), ("send", "y"), ("send", None), ("send", None)],
    [("send", None), ("throw", KeyError("k")), ("send", None)],
    [("send", None), ("throw", GeneratorExit()), ("send", None)],
    [("send", None), ("close", None), ("send", None)],
    [("throw", KeyError("before the start")), ("send", None)],
    [("send", "not None at the start")],
    [("send", None), ("send", None), ("send", None), ("throw", StopIteration(3)), ("send", None)],
], ids=str)
def test_yield_from(actions):
    log, expected_log = [], []
    found = drive(remade(delegate)(log.append), actions)
    assert found == drive(delegate(expected_log.append), actions)
    assert log == expected_log


def test_resume_arguments():
    """RESUME tells where a frame is resumed; throw() into a `yield from` looks at it."""
    async def co(x):
        yield await x
        yield 1

    def gen():
        yield 1
        yield from [2]

    for fn in (co, gen, delegate):
        args = [i.arg for i in dis.get_instructions(fn) if i.opname == "RESUME"]
        assert [i.arg for i in dis.get_instructions(again(fn.__code__)) if i.opname == "RESUME"] == args


def test_inspection_of_suspended_generators():
    gen = remade(delegate)(lambda x: None)
    assert gen.gi_yieldfrom is None and gen.gi_frame.f_lineno
    next(gen)
    assert isinstance(gen.gi_yieldfrom, types.GeneratorType) and inspect.getgeneratorstate(gen) == inspect.GEN_SUSPENDED


def test_generator_expressions_and_nesting():
    def original(n):
        total = sum(i * j for i in range(n) for j in (k for k in range(i)) if i % 2)
        return total, list(map(tuple, ([x, y] for x, y in zip("ab", "cd"))))

    assert remade(original)(7) == original(7)


def asynchronous(log):
    class Manager:
        async def __aenter__(self):
            await asyncio.sleep(0)
            log("enter")
            return self

        async def __aexit__(self, *exc):
            log(("exit", exc[0]))
            return exc[0] is ValueError

    async def numbers(n):
        try:
            for i in range(n):
                await asyncio.sleep(0)
                got = yield i
                log(("got", got))
        finally:
            log("closed")

    async def main():
        out = [i async for i in numbers(3) if i != 1]
        async with Manager() as m, Manager():
            out.append({i: i async for i in numbers(2)})
            raise ValueError
        async for i in numbers(5):
            if i == 2:
                break
        else:
            log("never")
        it = numbers(3)
        log(await it.__anext__())
        log(await it.asend("sent"))
        try:
            await it.athrow(KeyError("thrown"))
        except KeyError as e:
            log(e.args)
        await it.aclose()
        task = asyncio.ensure_future(asyncio.sleep(100))
        asyncio.get_running_loop().call_soon(task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            log("cancelled")
        return out

    return main


def test_async():
    log, expected_log = [], []
    assert asyncio.run(remade(asynchronous)(log.append)()) == asyncio.run(asynchronous(expected_log.append)())
    assert log == expected_log


def test_types_coroutine():
    @types.coroutine
    def yielder():
        got = yield "out"
        return got

    async def outer():
        return await yielder(), await yielder()

    coro = remade(outer)()
    assert coro.send(None) == "out"
    assert coro.send(1) == "out"
    with pytest.raises(StopIteration) as stop:
        coro.send(2)
    assert stop.value.value == (1, 2)
