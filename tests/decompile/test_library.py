"""A fixed sample of the standard library and of torch: decompiled and compiled again to the same control flow."""

import pathlib
import sysconfig
import types

import pytest
import torch

from framegraft.decompiler import DecompileError, decompile

LIBRARY = pathlib.Path(sysconfig.get_paths()["stdlib"])
TORCH = pathlib.Path(torch.__file__).parent
MODULES = [LIBRARY / m for m in (
    "argparse.py", "ast.py", "asyncio/tasks.py", "bdb.py", "calendar.py", "cmd.py", "contextlib.py", "copy.py", "csv.py", "dataclasses.py",
    "difflib.py", "email/message.py", "enum.py", "functools.py", "heapq.py", "http/client.py", "inspect.py", "json/decoder.py",
    "logging/handlers.py", "pickle.py", "pickletools.py", "pprint.py", "selectors.py", "shutil.py", "statistics.py", "string.py",
    "tarfile.py", "tempfile.py", "textwrap.py", "threading.py", "tokenize.py", "traceback.py", "typing.py", "urllib/parse.py",
    "uuid.py", "wsgiref/handlers.py",
)] + [TORCH / m for m in ("functional.py", "nn/modules/module.py", "nn/modules/rnn.py", "optim/adam.py", "_tensor.py")]


def functions(code):
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            if const.co_flags & 1 and not const.co_name.startswith("<"):
                yield const
            elif not const.co_flags & 1:
                yield from functions(const)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("path", MODULES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_module(path):
    module = compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)
    refused = []
    for code in functions(module):
        try:
            decompile(code)  # compares what its source is compiled to
        except DecompileError as error:
            refused.append(f"{code.co_name}: {error}")
    assert not refused
