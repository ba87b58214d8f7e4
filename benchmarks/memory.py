"""Peak memory of a capture, ours next to torch.compile with a backend that compiles nothing: each in a process of its own.

What the resident memory of the process grows by, at its highest, from just before the first captured call to its end; the
model has been made and called before. "Second" is the same for another model of the same kind: by then the tracer is loaded.
Linux only: the kernel's mark of the highest is set back in between.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import programs
import torch
from harness import arguments, print_table, report


def resident(line: str) -> int:
    """A line of /proc/self/status, in KiB."""
    text = Path("/proc/self/status").read_text()
    return next(int(row.split()[1]) for row in text.splitlines() if row.startswith(line))


def grown(program: programs.Program, compiler: Any) -> int:
    """KiB at the highest point of the first captured call above what there was before it."""
    fn, args, named = program
    fn(*args, **named)
    captured = compiler(fn, backend=lambda gm, example_inputs: gm.forward)
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again from VmRSS
    before = resident("VmRSS")
    captured(*args, **named)
    return resident("VmHWM") - before


def child(who: str, name: str) -> None:
    torch.set_num_threads(1)
    if who == "ours":
        import framegraft  # noqa: PLC0415 - not in the process that measures torch.compile

        compiler: Any = framegraft.compile
    else:
        compiler = torch.compile
    with torch.no_grad():
        print(json.dumps([grown(programs.known()[name](), compiler) for _ in range(2)]))


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--child", nargs=2, metavar=("WHO", "PROGRAM"), help="measure this one, here")
    options = parser.parse_args()
    if options.child:
        return child(*options.child)
    results: dict[str, dict[str, list[int]]] = {}
    for name in programs.known():
        for who in ("ours", "stock"):
            runs = []
            for _ in range(1 if options.quick else 3):
                command = [sys.executable, __file__, "--child", who, name]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                runs.append(json.loads(done.stdout.splitlines()[-1]))
            results.setdefault(name, {})[who] = [min(column) for column in zip(*runs, strict=True)]
    rows = []
    for name, found in results.items():
        for label, ours, stock in zip(("first", "second"), found["ours"], found["stock"], strict=True):
            rows.append((f"{name}, {label}", f"{ours / 1024:.1f} MiB", f"{stock / 1024:.1f} MiB", f"{stock / max(ours, 1):.1f}x"))
    print_table(("peak memory of a capture", "ours", "stock", "stock / ours"), rows)
    report("memory", results, options.json)


if __name__ == "__main__":
    main()
