"""The first captured call in a fresh process, imports counted: ours next to torch.compile, backend "eager"."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from harness import arguments, print_table, report

CHILD = """
import time
start = time.perf_counter()
import torch
torch_imported = time.perf_counter()
{imports}
imported = time.perf_counter()
def f(a, b):
    x = a / (torch.abs(a) + 1)
    return x * b
a, b = torch.randn(10), torch.randn(10)
g = {compile}(f, backend="eager")
g(a, b)
end = time.perf_counter()
import json, sys
print(json.dumps({{
    "torch_import_s": torch_imported - start,
    "import_s": imported - torch_imported,
    "after_torch_s": end - torch_imported,
    "total_s": end - start,
    "modules": len(sys.modules),
}}))
"""

PROGRAMS = {
    "ours": CHILD.format(imports="import framegraft", compile="framegraft.compile"),
    "stock": CHILD.format(imports="", compile="torch.compile"),
}


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    runs: dict[str, list[dict[str, Any]]] = {who: [] for who in PROGRAMS}
    for _ in range(1 if options.quick else 7):
        for who, program in PROGRAMS.items():
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
            runs[who].append(json.loads(done.stdout.splitlines()[-1]))
    best = {who: min(found, key=lambda run: run["total_s"]) for who, found in runs.items()}
    rows = []
    for key, label in (("torch_import_s", "import torch"), ("import_s", "import of the tracer"), ("after_torch_s", "after import torch"),
                       ("total_s", "total")):
        ours, stock = best["ours"][key], best["stock"][key]
        rows.append((label, f"{ours:.3f} s", f"{stock:.3f} s", f"{stock / ours:.1f}x" if key != "import_s" else ""))
    rows.append(("modules loaded", best["ours"]["modules"], best["stock"]["modules"], ""))
    print_table(("first call, fresh process", "ours", "stock", "stock / ours"), rows)
    report("first_call", best, options.json)


if __name__ == "__main__":
    main()
