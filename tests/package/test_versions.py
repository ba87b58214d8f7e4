"""Interpreters and torch releases that are not supported are told clearly."""

import opcode
import subprocess
import sys
import warnings
from importlib.util import find_spec

import pytest
import torch

from framegraft.bytecode.versions import VERSION, py314
from framegraft.bytecode.versions.running import SUPPORTED
from framegraft.native import tested

REFUSED = {
    "CPython 3.10 to 3.13; this is": "setattr(sys, 'version' + '_info', (3, 14, 0, 'final', 0))",
    "free-threaded": "import sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1",
    "CPython only": "sys.implementation.name = 'other'",
}


IN_ANOTHER_INTERPRETER = """
import importlib, sys
{first}
interpreters = importlib.import_module({module!r})
made = interpreters.create({arguments})
interpreters.run_string(made, '''
import sys
sys.path[:] = %r
try:
    import framegraft
except ImportError as error:
    print(error, "torch" in sys.modules)
''' % sys.path)
"""


@pytest.mark.parametrize("first", ["", "import framegraft"])
@pytest.mark.parametrize("isolated", [True, False])
def test_subinterpreters_are_refused_before_torch_is_imported(isolated, first):
    module, legacy = ("_interpreters", "'legacy'") if find_spec("_interpreters") else ("_xxsubinterpreters", "isolated=False")
    program = IN_ANOTHER_INTERPRETER.format(first=first, module=module, arguments="" if isolated else legacy)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "framegraft does not support subinterpreters False\n", done.stderr


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


def test_the_coming_cpythons_opcodes_are_told_from_this_ones():
    have, both = set(opcode.opmap), py314.CHANGED.keys() | {"POP_TOP", "LOAD_FAST", "BINARY_OP"}
    if VERSION.name == "3.13":
        assert not have & py314.NEW.keys() and have >= py314.GONE.keys() | both
    assert py314.FEATURES.name not in [f"{major}.{minor}" for major, minor in SUPPORTED]  # refused, as above, until it is tested
    assert all(set(there) <= have | py314.NEW.keys() | {"END_FOR", "END_SEND"} for there in py314.FEATURES.exits.values())
