"""A plugin of pytest: each test runs captured, with everything that it calls. ``-p captured_tests --captured eager``.

It is in no package here: libraries have packages ``tests`` of their own. One JSON line for each test goes to the file of ``--outcomes``. A test that finds no end within ``SECONDS`` of the processor fails.
"""

import contextlib
import json
import signal
from typing import Any

import pytest

SECONDS = 60


class TooLong(BaseException):
    pass


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("framegraft")
    group.addoption("--captured", metavar="BACKEND", help="capture each test, with this backend")
    group.addoption("--outcomes", metavar="FILE", help="append each test's outcome, one JSON line for each")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    def stop(*_: Any) -> None:
        raise TooLong(item.nodeid)

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    backend = item.config.getoption("--captured")
    try:
        if not backend:
            return (yield)
        import framegraft  # noqa: PLC0415 - the plain run does without

        framegraft.reset()
        with contextlib.ExitStack() as stack:
            _capture(item, framegraft.optimize(backend), stack)
            return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _capture(item: pytest.Item, captured: Any, stack: contextlib.ExitStack) -> None:
    """The test's own function is captured, with what it calls: pytest's frames around it are not."""
    if isinstance(item, pytest.Function):  # methods of unittest.TestCase among them
        original = item.obj
        item.obj = captured(original)
        stack.callback(setattr, item, "obj", original)


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell(nodeid, "started")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        _tell(report.nodeid, report.outcome, "" if report.passed else str(report.longrepr)[-3000:])


def _tell(id: str, outcome: str, told: str = "") -> None:
    if _out is not None:
        _out.write(json.dumps({"id": id, "outcome": outcome, "told": told}) + "\n")
        _out.flush()


_out: Any = None


def pytest_configure(config: pytest.Config) -> None:
    global _out
    file = config.getoption("--outcomes")
    _out = open(file, "a") if file else None  # noqa: SIM115 - open as long as the run
