"""Source text of what runs: the user's functions, transformed code, graphs and guards."""

from __future__ import annotations

import ast
import dis
import inspect
import io
import keyword
import linecache
import os
import pathlib
import re
import textwrap
from types import CodeType
from typing import Any

import torch

from ..decompiler import DecompileError, decompile
from ..decompiler.resumed import is_resume
from .details import GuardDetail, meaning


def user_source(filename: str, line: int) -> tuple[str, int]:
    """The text of the function that starts at ``line`` of a file, and its first line; "" where the file is not known."""
    lines = linecache.getlines(filename)
    if not 0 < line <= len(lines):
        return "", line
    try:
        block = inspect.getblock(lines[line - 1 :])
    except (SyntaxError, IndentationError):
        block = lines[line - 1 : line]
    return "".join(block), line

def writable(path: str | os.PathLike[str]) -> pathlib.Path:
    """The absolute path; folders on the way are made. Raises OSError where no file can be written: before long work, not behind it."""
    target = pathlib.Path(path).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    was_there = target.exists()
    with target.open("ab"):
        pass
    if not was_there:
        target.unlink()
    return target


def readable_code(code: CodeType, name: str = "") -> tuple[str, str]:
    """(source, "") or, where the decompiler refuses, (a disassembly as a comment, why it refused).

    The function is called ``name``, or, where its own name is no identifier, by one that is.
    """
    code = code.replace(co_name=name or function_name(code))
    try:
        return decompile(code) + "\n", ""
    except DecompileError as error:
        text = io.StringIO()
        dis.dis(code, file=text)
        return "".join(f"# {line}".rstrip() + "\n" for line in text.getvalue().splitlines()), str(error)

def function_name(code: CodeType) -> str:
    """A name that can stand in a file name."""
    name = f"resume_in_{code.co_name}" if is_resume(code) else code.co_name
    name = name if name.isidentifier() else name.strip("<>")
    return name if name.isidentifier() and not keyword.iskeyword(name) else "function"

# --- graphs ----------------------------------------------------------------------------------------------------------

def graph_text(module: Any) -> str:
    """A graph as a class with one method, each value with its type and shape, each line with where it comes from."""
    text = module.print_readable(print_output=False, include_stride=True, include_device=True)
    return textwrap.dedent(text).strip() + "\n"

_INPUT = '''
def tensor_like(shape, stride, dtype, device="cpu", requires_grad=False):
    """Random values of floating point, zeros of any other type (they may be indices)."""
    made = torch.empty_strided(shape, stride, dtype=dtype, device=device)
    made = made.normal_() if dtype.is_floating_point or dtype.is_complex else made.zero_()
    return made.requires_grad_() if requires_grad else made


def example_inputs():
    """One value for each input, of the shapes of the capture."""
    return [
{inputs}    ]
'''

_RUN = '''

if __name__ == "__main__":
    for result in {name}()(*example_inputs()):
        print(result)
'''

def graph_file(module: Any, inputs: list[Any], head: str, main: str = "") -> str:
    """A file that defines the graph and, run by itself, calls it with inputs of its shapes; ``main`` does something else, given
    ``graph()`` and ``example_inputs()``."""
    body = graph_text(module)
    imports, missing = _imports(module, set(re.findall(r"\w+", body)))
    name = body.split("class ", 1)[1].split("(", 1)[0]
    rows = "".join(f"        {input_text(value)},  # {node.name}\n" for node, value in zip(_placeholders(module), inputs, strict=False))
    notes = "".join(f"# {name} has no name that can be imported: set it before you call the graph.\n" for name in missing)
    main = main.replace("graph()", f"{name}()") or _RUN.format(name=name)
    return f'"""{head}"""\n\n{imports}\n{notes}\n{body}\n{_INPUT.format(inputs=rows, name=name)}{main}'

def _placeholders(module: Any) -> list[Any]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]

def input_text(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    grad = ", requires_grad=True" if value.requires_grad and value.is_floating_point() else ""
    device = f", device={str(value.device)!r}" if value.device.type != "cpu" else ""
    return f"tensor_like({tuple(value.shape)}, {tuple(value.stride())}, {value.dtype}{device}{grad})"

def _imports(module: Any, used: set[str]) -> tuple[str, list[str]]:
    """Import statements for the globals of a graph's code that are ``used``, and the names for which there are none."""
    lines, missing = {"import torch"}, []
    for name, value in sorted(graph_globals(module).items()):
        owner = getattr(value, "__module__", None)
        known = getattr(value, "__qualname__", getattr(value, "__name__", ""))
        if value is torch or name not in used:
            continue
        if type(value) is float:
            lines.add(f'{name} = float("{value}")')
        elif inspect.ismodule(value):
            lines.add(f"import {value.__name__} as {name}" if value.__name__ != name else f"import {name}")
        elif owner and owner != "__main__" and known.isidentifier():
            lines.add(f"from {owner} import {known}" + ("" if known == name else f" as {name}"))
        else:
            missing.append(name)
    return "\n".join(sorted(lines, key=lambda text: (not text.startswith("import torch"), text))) + "\n", missing

def graph_globals(module: Any) -> dict[str, Any]:
    """Names that the code of a graph uses, with their objects."""
    return dict(module.graph.python_code("self").globals)

# --- guards ----------------------------------------------------------------------------------------------------------

def guards_text(guards: list[GuardDetail], head: str) -> str:
    """The guards of one entry as a function that a person can read. It is not meant to run: the native core checks them."""
    out = [f'"""{head}"""\n\n', "def check_fn(L, G, C):\n",
           '    """L: parameters, G: globals, C: variables of enclosing functions, by name."""\n']
    last = ""
    for guard in guards:
        if guard.cause != last and guard.cause:
            filename, _, line = guard.cause.rpartition(":")
            source = linecache.getline(filename, int(line)).strip() if line.isdigit() else ""
            out.append(f"\n    # {guard.cause}" + (f"   {source}" if source else "") + "\n")
            last = guard.cause
        test = _expression(guard.code)
        test = test[4:] if test.startswith("not ") else f"not {test}"
        out.append(f"    if {test}:\n        return False  # {_one_line(meaning(guard))}\n")
    out.append("    return True\n")
    return "".join(out)

def _expression(text: str) -> str:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return f"___holds({text!r})"
    return text if "\n" not in text else f"({text})"

def _one_line(text: str) -> str:
    return " ".join(text.split())

