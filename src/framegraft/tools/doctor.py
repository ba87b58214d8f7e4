"""``framegraft doctor``: what a report of a fault should say, and whether everything works."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from .. import _native, config
from ..api import compile as compile_object
from ..backends.registry import list_backends
from ..native import calibrate
from ..native.tested import is_tested


@dataclass
class Finding:
    """One line of the doctor's: ``ok`` is None for what is neither good nor bad."""

    topic: str
    what: str
    ok: bool | None = None


def examine() -> list[Finding]:
    """Look at the environment, and capture a small function."""
    return [finding for look in (_versions, _native_core, _settings, _compilers, _capture) for finding in look()]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _versions() -> list[Finding]:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return [
        Finding("framegraft", f"{_version('framegraft')} in {os.path.dirname(os.path.dirname(__file__))}"),
        Finding("Python", python, True),
        Finding("torch", torch.__version__, is_tested(torch.__version__)),
        Finding("system", f"{platform.platform()}, {os.cpu_count()} processors, {torch.get_num_threads()} threads"),
        Finding("accelerator", torch.cuda.get_device_name() if torch.cuda.is_available() else "none"),
        Finding("other packages", ", ".join(f"{p} {_version(p)}" for p in ("rich", "numpy", "transformers"))),
    ]


def _native_core() -> list[Finding]:
    calibrate.ensure_calibrated()
    if calibrate.calibrated:
        told = Finding("calibration", "the layout of torch's tensors was found and verified; guards read it in place", True)
    else:
        told = Finding("calibration", "guards read tensors through Python attributes: correct, and slow", False)
    return [Finding("native core", str(getattr(_native, "__file__", "built in")), True), told]


def _settings() -> list[Finding]:
    found = []
    changed = {name: value for name, value in config.settings().items() if value != _DEFAULTS[name]}
    if changed:
        found.append(Finding("settings", ", ".join(f"{name}={value!r}" for name, value in changed.items())))
    variables = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(("FRAMEGRAFT_", "TORCH_COMPILE", "TORCHDYNAMO_"))]
    if variables:
        found.append(Finding("environment", ", ".join(variables)))
    return found


_DEFAULTS = config.settings()


def _compilers() -> list[Finding]:
    compiler = next((path for path in map(shutil.which, (os.environ.get("CXX", ""), "g++", "clang++")) if path), None)
    return [
        Finding("backends", ", ".join(list_backends())),
        Finding("C++ compiler", compiler or "none: inductor cannot compile for the processor", compiler is not None),
    ]


def _capture() -> list[Finding]:
    def sample(x: Any, factor: int) -> Any:
        y = torch.relu(x) * factor
        if y.sum() > 1e9:
            return y
        return y - 1

    x = torch.linspace(-1, 1, 8)
    compiled = compile_object(sample, backend="eager")
    start = time.perf_counter()
    try:
        same = torch.equal(compiled(x, 2), sample(x, 2)) and torch.equal(compiled(x, 2), sample(x, 2))
    except Exception as error:
        return [Finding("capture", f"{type(error).__name__}: {error}", False)]
    took = time.perf_counter() - start
    entries = _native.cache_entries(sample.__code__)
    if not same or not entries:
        return [Finding("capture", "a small function gives a wrong result" if not same else "nothing was captured", False)]
    spent = _per_call(lambda: entries[0].program.check((x, 2), sample))
    return [Finding("capture", f"works; a small function took {took * 1e3:.0f} ms, its guards {spent * 1e9:.0f} ns a call", True)]


def _per_call(fn: Callable[[], Any]) -> float:
    fn()
    start = time.perf_counter()
    for _ in range(1000):
        fn()
    return (time.perf_counter() - start) / 1000
