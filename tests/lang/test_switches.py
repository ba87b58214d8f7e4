"""Torch's switches that a program sets to what they are already, or that others have changed between two calls."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import torch

import framegraft

C: Any = torch._C

SWITCHES = {
    "anomaly": (torch.set_anomaly_enabled, torch.is_anomaly_enabled, (False, True)),
    "multithreading": (C._set_multithreading_enabled, C._is_multithreading_enabled, (True, False)),
    "math": (C._set_sdp_use_math, C._get_math_sdp_enabled, (True, False)),
    "flash": (C._set_sdp_use_flash, C._get_flash_sdp_enabled, (True, False)),
    "cudnn": (C._set_cudnn_enabled, C._get_cudnn_enabled, (True, False)),
    "benchmark": (C._set_cudnn_benchmark, C._get_cudnn_benchmark, (False, True)),
    "deterministic": (C._set_cudnn_deterministic, C._get_cudnn_deterministic, (False, True)),
    "allow_tf32": (C._set_cudnn_allow_tf32, C._get_cudnn_allow_tf32, (True, False)),
    "autocast_cache": (torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled, (True, False)),
    "precision": (lambda value: C._set_fp32_precision_setter("cuda", "all", value),
                  lambda: C._get_fp32_precision_getter("cuda", "all"), ("none", "ieee")),
}
if hasattr(C, "_set_cudnn_depthwise_kernel"):  # not in torch 2.11
    SWITCHES["depthwise_kernel"] = (C._set_cudnn_depthwise_kernel, C._get_cudnn_depthwise_kernel, ("auto", "cudnn"))
BACKENDS = ["eager", "aot_eager"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SWITCHES)
def test_set_to_what_holds(name: str, backend: str) -> None:
    """A call that changes nothing in the call that was captured does so in another."""
    setter, getter, values = SWITCHES[name]
    held = getter()

    def f(x: torch.Tensor) -> torch.Tensor:
        setter(values[0])
        return x + 1

    try:
        compiled = framegraft.optimize(backend)(f)
        for value in (values[0], values[1], values[0]):
            setter(value)
            compiled(torch.ones(2))
            assert getter() == values[0]
    finally:
        setter(held)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SWITCHES)
def test_asked(name: str, backend: str) -> None:
    setter, getter, values = SWITCHES[name]
    held = getter()

    def f(x: torch.Tensor) -> list:
        found = [getter()]
        for value in values:
            setter(value)
            found.append(getter())
        return [x + 1, *found]

    try:
        compiled = framegraft.optimize(backend)(f)
        for value in (values[0], values[1], values[0]):
            setter(value)
            expected = f(torch.ones(2))[1:]
            setter(value)
            assert compiled(torch.ones(2))[1:] == expected
            assert getter() == values[1]
    finally:
        setter(held)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fails", [False, True], ids=["returns", "raises"])
def test_flags_of_cudnn(backend: str, fails: bool) -> None:
    """In one graph; what is set inside holds inside only, also where the block is left by an error."""

    def f(x: torch.Tensor, enabled: bool) -> tuple:
        try:
            with torch.backends.cudnn.flags(enabled=enabled, deterministic=True):
                inside = torch._C._get_cudnn_enabled(), torch._C._get_cudnn_deterministic()
                y = x + 1
                if fails:
                    raise ValueError(inside)
        except ValueError as error:
            inside = error.args
        return y * 2, inside, torch._C._get_cudnn_enabled(), torch._C._get_cudnn_deterministic()

    compiled = framegraft.optimize(backend, nopython=True)(f)
    held = C._get_cudnn_enabled()
    try:
        for outside in (True, False, True):
            C._set_cudnn_enabled(outside)
            for enabled in (False, True):
                got, expected = compiled(torch.ones(2), enabled), f(torch.ones(2), enabled)
                assert got[0].equal(expected[0]) and got[1:] == expected[1:]
                assert C._get_cudnn_enabled() == outside
    finally:
        C._set_cudnn_enabled(held)


PRECISIONS = {
    "all": lambda: setattr(torch.backends, "fp32_precision", "ieee"),
    "cuda": lambda: C._set_fp32_precision_setter("cuda", "all", "ieee"),
    "conv": lambda: C._set_fp32_precision_setter("cuda", "conv", "ieee"),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PRECISIONS)
def test_precision_that_hides_the_old_switch(name: str, backend: str) -> None:
    """Where the precision was set by its own names, torch raises if asked for ``allow_tf32``. In a process of its own, since
    nothing leads back to what holds at the start."""
    done = subprocess.run([sys.executable, "-c", HIDDEN.format(backend=backend), name], capture_output=True, text=True,
                          cwd=pathlib.Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr


HIDDEN = """
import sys
import torch
import framegraft
from tests.lang.test_switches import C, PRECISIONS


def state():
    try:
        old = C._get_cudnn_allow_tf32()
    except RuntimeError:
        old = "raises"
    return old, [C._get_fp32_precision_getter("cuda", where) for where in ("all", "conv", "rnn", "matmul")]


def plain(x):
    return x + 1


def asks(x):
    try:
        return x + 1, C._get_cudnn_allow_tf32()
    except RuntimeError as error:
        return x + 2, str(error)


def sets(x):
    C._set_cudnn_allow_tf32(False)
    return x + 1, C._get_cudnn_allow_tf32()


def sets_precision(x):
    C._set_fp32_precision_setter("cuda", "all", "tf32")
    return x + 1


def sets_both(x):
    C._set_cudnn_allow_tf32(False)
    C._set_fp32_precision_setter("cuda", "all", "tf32")
    return x + 1


def start():
    C._set_cudnn_allow_tf32(True)
    for where in ("all", "conv", "rnn"):
        C._set_fp32_precision_setter("cuda", where, "none" if where == "all" else "tf32")


framegraft.config.raise_internal_errors = True
for again in range(2):  # as a process starts, and where all was set
    for fn in (plain, asks, sets, sets_precision, sets_both):
        compiled = framegraft.optimize("{backend}")(fn)
        for before in (PRECISIONS[sys.argv[1]], lambda: None) * 2:
            found = []
            for each in (fn, compiled):
                if again:
                    start()
                before()
                found.append((str(each(torch.ones(2))), state()))
            assert found[0] == found[1], (fn, found)
"""


WRONG = {
    "autocast": lambda: torch.autocast("cpu", enabled=1),
    "grad_mode": lambda: torch._C._set_grad_enabled(1),
    "autocast_dtype": lambda: torch.set_autocast_dtype("cpu", 3),
    "autocast_of_no_device": lambda: torch.set_autocast_enabled("nowhere", True),
    "autocast_alone": lambda: torch.set_autocast_enabled("cpu"),
    "multithreading": lambda: torch.autograd.set_multithreading_enabled(1),
    "anomaly": lambda: torch.autograd.set_detect_anomaly(0),
    "cudnn": lambda: C._set_cudnn_enabled(1),
    "math": lambda: C._set_sdp_use_math(1),
    "default_device": lambda: torch.set_default_device("nowhere"),
}


@pytest.mark.parametrize("name", WRONG)
def test_set_to_something_else(name: str) -> None:
    """Switches want truth values: for 1 they raise, also where they are True."""
    def f(x: torch.Tensor) -> Any:
        with WRONG[name]() or contextlib.nullcontext():
            return x + 1

    with framegraft.config.patch(raise_internal_errors=True):
        for fn in (f, framegraft.compile(f, backend="eager")):
            with pytest.raises((TypeError, RuntimeError)) as caught:
                fn(torch.ones(2))
            assert not isinstance(caught.value, framegraft.exc.InternalError)
