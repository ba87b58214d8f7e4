"""The table of CPython and torch releases in README.md, from what the test suites say there.

    python docs/pairs.py [INTERPRETER ...]      each with torch and the packages of requirements-dev.txt

Without interpreters, only writes the table anew from docs/pairs.json, which keeps the last result for each pair.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]
RESULTS, README = ROOT / "docs" / "pairs.json", ROOT / "README.md"
SUITES = ("bytecode", "native", "engine", "lang", "soundness", "decompile", "models")
BEGIN, END = "<!-- pairs -->", "<!-- end of pairs -->"
ASK = "import platform, torch; print(platform.python_version(), torch.__version__.split('+')[0])"


def outcome(python: str, suite: str, jobs: int, limit: float) -> str:
    """What pytest says of one suite, as "50 passed", "3 failed, 50 passed" or "not finished"; prints which failed."""
    command = [python, "-m", "pytest", "-q", "-o", "addopts=--strict-markers", "-n", str(jobs), f"tests/{suite}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return "not finished"
    print(*re.findall(r"^(?:FAILED|ERROR) .*", done.stdout, re.MULTILINE), sep="\n", flush=True)
    counts = {what: n for n, what in re.findall(r"(\d+) (passed|failed|error)", done.stdout[-200:])}
    wrong = [f"{counts[what]} {what}" for what in ("failed", "error") if what in counts]
    return ", ".join([*wrong, f"{counts.get('passed', 0)} passed"]) if counts else "no result"


def measure(python: str, suites: list[str], jobs: int, limit: float) -> Iterator[dict[str, str]]:
    """Build the extension for an interpreter and run the suites under it; what is known of the pair after each."""
    subprocess.run([python, "setup.py", "-q", "build_ext", "--inplace", "--force"], cwd=ROOT, check=True)
    versions = subprocess.run([python, "-c", ASK], check=True, capture_output=True, text=True).stdout.split()
    row = {"python": versions[0], "torch": versions[1]}
    for suite in suites:
        row[suite] = outcome(python, suite, jobs, limit)
        yield row


def table(rows: list[dict[str, str]]) -> str:
    lines = ["| CPython | torch | " + " | ".join(SUITES) + " |", "|---" * (2 + len(SUITES)) + "|"]
    lines += ["| " + " | ".join(row.get(column, "") for column in ("python", "torch", *SUITES)) + " |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("interpreters", nargs="*", help="paths of Python interpreters")
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=SUITES, help="only these; the others keep their last result")
    parser.add_argument("--jobs", type=int, default=2, help="processes for each suite")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for each suite")
    options = parser.parse_args()
    known = {(row["python"], row["torch"]): row for row in (json.loads(RESULTS.read_text()) if RESULTS.exists() else [])}
    for python in options.interpreters:
        for row in measure(python, options.suites, options.jobs, options.limit):
            known[row["python"], row["torch"]] = {**known.get((row["python"], row["torch"]), {}), **row}
            save(known)
    save(known)


def save(known: dict[tuple[str, str], dict[str, str]]) -> None:
    rows = sorted(known.values(), key=lambda row: [[int(n) for n in row[of].split(".")] for of in ("python", "torch")])
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    text = README.read_text()
    before, rest = text.split(BEGIN)
    README.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
