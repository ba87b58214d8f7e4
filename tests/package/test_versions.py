"""Interpreters and torch releases that are not supported are told clearly."""

import subprocess
import sys
import warnings

import pytest
import torch

from framegraft.native import tested

REFUSED = {
    "CPython 3.10 to 3.13; this is": "setattr(sys, 'version' + '_info', (3, 14, 0, 'final', 0))",
    "free-threaded": "import sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1",
    "CPython only": "sys.implementation.name = 'other'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_interpreters_are_refused_at_import(text):
    program = f"import sys; {REFUSED[text]}\ntry:\n    import framegraft\nexcept ImportError as error:\n    print(error)"
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60).stdout
    assert text in told


def test_another_torch_gives_a_warning(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tested.warn_if_untested()
    monkeypatch.setattr(torch, "__version__", "2.99.0+cpu")
    with pytest.warns(UserWarning, match=r"tested with torch 2\.13 only; this is 2\.99\.0"):
        tested.warn_if_untested()
