"""The frame evaluation hook: what it captures, what it leaves alone, threads, tracing, other hooks."""

import asyncio
import ctypes
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import threading

import pytest

import framegraft
from framegraft import _native

from .build import ALWAYS, Compiled, fresh, positional


def add(x, y=1):
    return x + y


class Capture:
    """With the hook on, frames of the given functions run compiled code."""

    def __init__(self, *fns, body=None, mode=1):
        self.bodies = {fn.__code__: body or fn for fn in fns}
        self.fns = fns
        self.seen = []
        self.mode = mode

    def miss(self, fn, args):
        body = self.bodies.get(fn.__code__)
        if body is None:
            return None
        # Before CPython 3.11 a frame does not know its function: one of the same code stands for it.
        self.seen.append((next((known for known in self.fns if known.__code__ is fn.__code__), fn), args))
        entry = _native.Entry(ALWAYS, positional(body), fn.__globals__, self)
        _native.add_entry(fn.__code__, entry)
        return entry

    def __enter__(self):
        self.old = _native.set_mode(self.mode, self, self.miss)
        return self

    def __exit__(self, *exc):
        _native.set_mode(*self.old)


def test_frames_inside_a_block_are_captured():
    fn = fresh(add)
    with Capture(fn, body=lambda x, y: ("captured", x, y)) as capture:
        assert fn(1) == ("captured", 1, 1) and fn(y=5, x=2) == ("captured", 2, 5)
    assert capture.seen == [(fn, (1, 1))]
    assert fn(1) == 2, "outside the block it runs as it is"


def test_run_only_uses_what_is_there():
    fn = fresh(add)
    with Capture(fn, body=lambda x, y: ("captured", x, y)) as capture:
        fn(1)
    with Capture(fn, mode=3) as other:
        assert fn(1) == 2, "an entry of another context"
        old = _native.set_mode(3, None, None)
        assert fn(1) == ("captured", 1, 1)
        _native.set_mode(*old)
    assert len(capture.seen) == 1 and not other.seen


def test_errors_of_the_miss_leave_the_frame():
    fn = fresh(add)

    def miss(f, args):
        if f.__code__ is fn.__code__:
            raise LookupError("no")

    old = _native.set_mode(1, None, miss)
    try:
        with pytest.raises(LookupError):
            fn(1)
        with pytest.raises(LookupError):
            sorted([3, 1, 2], key=fn)
    finally:
        _native.set_mode(*old)
    assert fn(1) == 2


def test_generators_and_coroutines_pass():
    def gen(x):
        got = yield x
        try:
            yield got
        except ValueError as e:
            yield str(e)

    async def co(x):
        await asyncio.sleep(0)
        return [i async for i in agen(x)]

    async def agen(x):
        yield x

    with Capture(gen, co, agen) as capture:
        g = gen(1)
        assert (next(g), g.send(2), g.throw(ValueError("v"))) == (1, 2, "v")
        assert asyncio.run(co(3)) == [3]
        assert sum(i for i in range(4)) == 6
    assert not capture.seen


def test_class_bodies_modules_and_closures():
    def make(x):
        class Inner:
            value = x

            def get(self):
                return x, __class__

        return Inner

    with Capture(make):
        inner = make(5)
        exec("z = 1", {})
    assert inner.value == 5 and inner().get() == (5, inner)


def test_arguments_that_become_cells():
    def function(a, *args, k=2, **kw):
        return (lambda: (a, args, k, kw))()

    with Capture(function) as capture:
        assert function(1, 2, k=3, z=4) == (1, (2,), 3, {"z": 4})
        assert function(1) == (1, (), 2, {})
    assert len(capture.seen) == 1


def test_eight_threads():
    """Modes belong to threads: half of them capture, half of them do not, on the same functions."""
    fn = fresh(add)
    made = Compiled(fresh(add), lambda x, y: ("compiled", x, y))
    wrong, barrier = [], threading.Barrier(8)

    def captured():
        barrier.wait()
        for i in range(300):
            with Capture(fn, body=lambda x, y: ("captured", x, y)) as capture:
                if fn(i) != ("captured", i, 1):
                    wrong.append(i)
            _native.clear_cache(fn.__code__) if i % 50 == 0 else None

    def plain():
        barrier.wait()
        for i in range(3000):
            if fn(i) != i + 1 or made.call(i) != ("compiled", i, 1) or _native.get_mode()[0] != 0:
                wrong.append(i)

    threads = [threading.Thread(target=t) for t in [captured, plain] * 4]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_thread_that_ends_with_the_hook_on():
    """Nothing of it stays: neither its context nor the hook."""
    class Ctx:
        pass

    import gc
    import weakref

    refs = []

    def run():
        ctx = Ctx()
        refs.append(weakref.ref(ctx))
        _native.set_mode(1, ctx, lambda *a: None)

    t = threading.Thread(target=run)
    t.start()
    t.join()
    gc.collect()
    assert refs[0]() is None


def test_recursion_under_the_hook():
    def deep(n):
        return deep(n + 1)

    with Capture(deep):
        with pytest.raises(RecursionError):
            deep(0)

    def count(n):
        return n and 1 + count(n - 1)

    with Capture(count):
        assert count(300) == 300


@pytest.mark.parametrize("setter", [sys.settrace, sys.setprofile], ids=["settrace", "setprofile"])
def test_tracing(setter):
    made = Compiled(fresh(add), lambda x, y: [x, y])
    fn = fresh(add)
    events = []

    def tracer(frame, event, arg):
        events.append(event)
        return tracer

    setter(tracer)
    try:
        assert made.call(1) == [1, 1]
        with Capture(fn, body=lambda x, y: (x, y)):
            assert fn(2) == (2, 1)
        with pytest.raises(TypeError):
            made.call()
    finally:
        setter(None)
    assert {"call", "return"} <= set(events)


def test_a_tracer_that_raises():
    made = Compiled(fresh(add))
    made.call(1)

    def tracer(frame, event, arg):
        raise LookupError("tracer")

    with pytest.raises(LookupError):
        sys.settrace(tracer)
        try:
            made.call(1)
        finally:
            sys.settrace(None)
    assert made.call(1) == 2


def test_frames_can_be_inspected():
    made = Compiled(fresh(add), lambda x, y: sys._getframe().f_back.f_code.co_name)
    assert made.call(1) == "test_frames_can_be_inspected"


OTHER = """
#include "compat.h"
static _PyFrameEvalFunction below;
long frames;
static PyObject *other(PyThreadState *ts, FgFrame *f, int t)
{ frames++; return below(ts, f, t); }
void install(void)
{ PyInterpreterState *i = PyInterpreterState_Get(); below = _PyInterpreterState_GetEvalFrameFunc(i);
  _PyInterpreterState_SetEvalFrameFunc(i, other); }
void uninstall(void) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), below); }
int installed(void) { return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == other; }
int any(void) { return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) != _PyEval_EvalFrameDefault; }
"""


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another evaluation hook, as a debugger or a profiler has it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("hook")
    (folder / "other.c").write_text(OTHER)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "other.so", folder / "other.c",
                    f"-I{sysconfig.get_paths()['include']}", f"-I{pathlib.Path(framegraft.__file__).parent / 'csrc'}"], check=True)
    return ctypes.PyDLL(str(folder / "other.so"))


def frames(other):
    return ctypes.c_long.in_dll(other, "frames").value


def test_a_hook_that_was_there_before(other):
    fn = fresh(add)
    other.install()
    try:
        with Capture(fn, body=lambda x, y: ("captured", x, y)):
            before = frames(other)
            assert fn(1) == ("captured", 1, 1)
            assert frames(other) > before, "its turn comes for every frame that runs"
        assert other.installed()
    finally:
        other.uninstall()
    assert not other.any()


def test_a_hook_that_comes_later_and_goes_first(other):
    fn = fresh(add)
    with Capture(fn, body=lambda x, y: ("captured", x, y)):
        other.install()
        assert fn(1) == 2, "the frames are its own"
        other.uninstall()
        assert fn(1) == ("captured", 1, 1)
    assert not other.any()


def test_a_hook_that_comes_later_and_stays(other):
    fn = fresh(add)
    with Capture(fn, body=lambda x, y: ("captured", x, y)):
        other.install()
    assert other.installed() and fn(1) == 2
    for _ in range(3):
        with Capture(fn, body=lambda x, y: ("captured", x, y)):
            assert fn(1) == ("captured", 1, 1)
    assert other.installed()
    other.uninstall()  # puts ours back, which is not wanted any more
    assert fn(1) == 2
    with Capture(fn, body=lambda x, y: ("captured", x, y)):
        assert fn(1) == ("captured", 1, 1)
    assert fn(1) == 2 and not other.any()


def test_the_module_can_be_imported_again():
    """In a process of its own: the module dict is made anew, the types and the state stay."""
    source = """
import sys
from framegraft import _native as first
def f(x): return x
import importlib
del sys.modules["framegraft._native"]
second = importlib.import_module("framegraft._native")
assert second.CompiledFunction is first.CompiledFunction and second.MISSING is first.MISSING
call = second.CompiledFunction(f, None, lambda callee, args: None)
assert call(1) == 1
first.set_mode(1, None, lambda *a: None)
assert second.get_mode()[0] == 1
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.stdout == "fine\n" and done.returncode == 0, done.stderr


def test_a_process_may_end_with_the_hook_on():
    source = """
import threading
from framegraft import _native
class Ctx:
    def __del__(self): print("gone")
_native.set_mode(1, Ctx(), lambda *a: None)
t = threading.Thread(target=lambda: _native.set_mode(1, None, lambda *a: None)); t.start(); t.join()
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
