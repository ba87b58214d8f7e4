"""Write the documents that are made from the source; ``--check`` only says whether they are up to date."""

from __future__ import annotations

import difflib
import runpy
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
SOURCE = DOCS.parent / "src" / "framegraft"


def reasons() -> str:
    """One section for each reason of a graph break."""
    # by path: the document can be made before the extension is built
    table = runpy.run_path(str(SOURCE / "reasons.py"), run_name="framegraft_reasons")["REASONS"]
    parts = [
        "# Reasons of graph breaks",
        "",
        "Made from `src/framegraft/reasons.py` by `docs/generate.py`; change it there.",
        "",
        "A break ends a graph; the program goes on in plain Python, and a new graph starts soon after. The log",
        "`graph_breaks`, `framegraft.explain` and `framegraft.exc.Unsupported` name a reason, with a detail",
        "and your line. `framegraft reasons` prints this catalogue, `framegraft explain FILE:FUNCTION` the breaks of a function.",
        "",
        "In each example the function `f`, compiled and called with `torch.ones(3)`, breaks for the reason that is told; a test",
        "runs all of them.",
        "",
    ]
    for reason in table.values():
        parts += [f"## {reason.id}", "", reason.why, "", f"*What to do:* {reason.hint}", ""]
        parts += ["```python", reason.example.rstrip("\n"), "```", ""]
    return "\n".join(parts)


DOCUMENTS = {"reasons.md": reasons}


def main() -> int:
    stale = 0
    for name, make in DOCUMENTS.items():
        path, wanted = DOCS / name, make()
        found = path.read_text() if path.exists() else ""
        if found == wanted:
            continue
        if "--check" in sys.argv:
            stale += 1
            sys.stderr.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), name, "wanted"))
            sys.stderr.write(f"docs/{name} is not up to date: run `make docs`\n")
        else:
            path.write_text(wanted)
            print(f"wrote docs/{name}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
