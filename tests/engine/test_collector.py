"""The garbage collector waits while a frame is captured, and is afterwards, and for the compiler, as the program has it."""

import gc
import weakref
from collections.abc import Iterator

import pytest
import torch

import framegraft
from framegraft import exc


@pytest.fixture(params=[True, False], ids=["on", "off"])
def state(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_compilers_run_with_the_collector_as_it_was(state):
    seen = []

    def backend(module, inputs):
        seen.append(gc.isenabled())
        return module.forward

    @framegraft.compile(backend=backend)
    def f(x):
        y = x * 2
        framegraft.graph_break()
        return y + 1

    f(torch.ones(2))
    assert seen == [state] * 2
    assert gc.isenabled() is state


def test_nothing_is_collected_during_the_trace():
    during = []

    def note(phase, info):
        during.append(phase)

    def backend(module, inputs):
        gc.callbacks.remove(note)
        return module.forward

    def f(x):
        for i in range(200):
            x = torch.sin(x) + i
        return x

    before = gc.get_threshold()
    gc.set_threshold(10, 10, 10)
    gc.callbacks.append(note)
    try:
        framegraft.compile(f, backend=backend)(torch.ones(3))
    finally:
        gc.set_threshold(*before)
        if note in gc.callbacks:
            gc.callbacks.remove(note)
    assert len(during) < 50  # what runs before and behind the trace


def test_after_an_error(state):
    def broken(module, inputs):
        raise ValueError("broken")

    with pytest.raises(exc.BackendCompilerFailed):
        framegraft.compile(lambda x: x + 1, backend=broken)(torch.ones(3))
    assert gc.isenabled() is state
    with pytest.raises(exc.Unsupported):
        framegraft.compile(lambda x: print(x), backend="eager", fullgraph=True)(torch.ones(3))
    assert gc.isenabled() is state


class Cycle:
    def __init__(self):
        self.me = self


def adds(x):
    for i in range(50):
        x = torch.sin(x) + i
    return x


def test_what_a_capture_makes_is_not_young_but_garbage_from_before_is_gone():
    modules = []

    def backend(module, inputs):
        modules.append(module)
        return module.forward

    gc.collect()
    died = weakref.ref(Cycle())
    framegraft.compile(adds, backend=backend)(torch.ones(3))
    gc.disable()
    try:
        assert died() is None
        young = {id(o) for generation in (0, 1) for o in gc.get_objects(generation)}
        assert not young & {id(node) for node in modules[0].graph.nodes}
    finally:
        gc.enable()


def test_frozen_objects_stay_frozen():
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        framegraft.compile(adds, backend="eager")(torch.ones(3))
        assert abs(gc.get_freeze_count() - frozen) < frozen / 2  # some have died
    finally:
        gc.unfreeze()
