"""Every test starts with empty caches, the default settings but ``raise_internal_errors``, and a fixed seed."""

import builtins
import contextlib
import gc
import pathlib
import random

import pytest
import torch

import framegraft
from framegraft import config, events, log
from framegraft.reasons import REASONS
from framegraft.run import records
from framegraft.tensor import modes

torch.set_num_threads(1)
# Its syntax is CPython 3.11's.
collect_ignore = [] if hasattr(builtins, "ExceptionGroup") else ["lang/test_exception_groups.py"]


def pytest_addoption(parser):
    parser.addoption("--known", action="store_true", help="run the tests of known_failures.txt, too")
    parser.addoption("--decompiled", choices=("transformed", "resumed", "later"), help="run what code decompiles to in its place "
                     "(see tests/decompile/swap.py)")
    parser.addoption("--device", help="the default device of every test, cuda for instance")
    parser.addoption("--slow", action="store_true", help="run the tests marked slow, too")


KNOWN = pathlib.Path(__file__).with_name("known_failures.txt")


def expect_known_failures(items):
    known = tuple(line for line in KNOWN.read_text().splitlines() if line and not line.startswith("#"))
    for item in items:
        if item.nodeid.startswith(known):
            item.add_marker(pytest.mark.xfail(reason="listed in known_failures.txt", run=False))


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--known"):
        expect_known_failures(items)
    if config.getoption("--decompiled"):
        skip = pytest.mark.skip(reason="looks at the engine's own code")
        for item in items:
            if "own_code" in item.keywords:
                item.add_marker(skip)
            for mark in item.iter_markers("xfail"):
                mark.kwargs["strict"] = False  # what graphs do wrong goes right where none are
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="needs --slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


class Lint(events.Listener):
    """Every graph is whole: torch.fx looks through it."""

    is_permanent = True

    def graph_traced(self, event):
        event.module.graph.lint()


LINT = events.subscribe(Lint())


@contextlib.contextmanager
def decompiled(mode):
    if mode is None:
        yield
        return
    from .decompile.swap import swapping
    from .lang import differential

    differential.COUNT_GRAPHS = mode == "transformed"  # resume functions run without graphs else
    with swapping(mode):
        yield


@pytest.fixture
def no_listeners():
    """For tests that step through captures: a listener is code of the program's."""
    events.unsubscribe(LINT)
    yield
    events.subscribe(LINT)


@pytest.fixture(autouse=True, scope="module")
def small_heap():
    """Collections that the tests ask for walk through what the module made: what was there before it waits for the next module's."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def clean_state(request):
    grad = torch.is_grad_enabled()
    dtype = torch.get_default_dtype()
    with config.preserved():
        config.raise_internal_errors = True
        config.repro_directory = ""
        framegraft.reset()
        random.seed(0)
        torch.manual_seed(0)
        torch.set_default_device(request.config.getoption("--device"))
        with decompiled(request.config.getoption("--decompiled")):
            yield
        reasons = {broken.reason for broken in records.BREAKS}
        framegraft.reset()
        depth = modes.autocast_nesting()
        modes.leave_autocast(0)
        assert depth == 0, f"autocast regions left open: {depth}"
        assert reasons <= REASONS.keys(), f"reasons that are not in the catalogue: {reasons - REASONS.keys()}"
    log.reset_logs()
    torch.set_default_device(None)
    torch.set_grad_enabled(grad)
    torch.set_default_dtype(dtype)
