"""Why a call fitted none of the captures: the guard that failed, what was expected and what was found, and what to do."""

from __future__ import annotations

from typing import Any

from .. import _native
from . import records

_ADVICE = {
    "TENSOR": "If sizes differ from call to call, the next capture makes them symbols; framegraft.mark_dynamic(t, dim) or "
              "dynamic=True does so at once. Other differences (dtype, device, requires_grad) need captures of their own.",
    "SHAPE": "The program asks this of its sizes (see the line). Other sizes need a capture of their own, unless the branch or "
             "the operation that asks can be written without it.",
    "EQ": "An int or float that changes becomes a symbol in the next capture; any other constant needs a capture for each value. "
          "Pass it as a tensor, or keep it out of the compiled function.",
    "ID": "Another object than before. Reuse the object, or pass it as an argument whose parts are looked at.",
    "STATE": "A mode of torch differs (grad mode, autocast, default dtype, deterministic algorithms). Call under the same modes.",
}
_NAMED = {"KEYS": "EQ", "LEN": "EQ", "TYPE": "EQ", "RANGE": "EQ", "TYPEVER": "ID"}


def reasons(fn: Any, entries: list, args: tuple) -> list[str]:
    """One text for each entry whose guards fail, most recent first."""
    found = []
    for entry in entries:
        failed = entry.program.explain(args, fn)
        if failed is not None:
            found.append(_reason(entry.info, failed, fn, args))
    return found


def _reason(info: Any, failed: tuple, fn: Any, args: tuple) -> str:
    number, value = failed
    if number < 0:
        return info.describe(number)
    check = info.check_fn
    text, cause = check.code_parts[number], check.causes[number]
    kind = check.kinds[number]
    lines = [f"failed guard: {text}"]
    if kind == "SHAPE":
        frame = {"L": dict(zip(check.argnames, args, strict=True)), "G": fn.__globals__}
        lines.append(f"  now:      {', '.join(f'{name} is {_value_of(name, frame)}' for name in check.slots[number])}")
    elif value is _native.MISSING:
        lines.append("  now:      there is no such object")
    else:
        lines.append(f"  now:      {records.describe(value)}")
    if cause:
        lines.append(f"  asked by: {cause}")
    advice = _ADVICE.get(_NAMED.get(kind, kind))
    if advice:
        lines.append(f"  hint:     {advice}")
    return "\n".join(lines)


def _value_of(name: str, frame: dict) -> Any:
    try:
        return eval(name, frame)
    except Exception:
        return "unknown"  # a path through an object that Python code cannot follow by name
