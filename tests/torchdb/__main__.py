"""`python -m tests.torchdb`: torch's own databases of operators, modules and optimizers as differential tests.

Each database runs in processes of its own, so that a crash of the interpreter is a verdict like any other. The verdicts go
to a file of JSON lines, a table of them to the screen.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from .table import summary

OPERATORS = ("op_db", "autograd_function_db", "custom_op_db", "hop_db")
DATABASES = (*OPERATORS, "module_db", "optim_db")


def cases_of(database: str, names: set[str] | None, count: int | None) -> Iterator[Any]:
    if database in OPERATORS:
        from . import operators

        return operators.cases(database, names, count)
    if database == "module_db":
        from . import modules

        return modules.cases(names, count)
    from . import optimizers

    return optimizers.cases(names, count)


def names_of(database: str) -> list[str]:
    if database in OPERATORS:
        from . import operators

        return operators.names(database)
    if database == "module_db":
        from . import modules

        return modules.names()
    from . import optimizers

    return optimizers.names()


def work(args: argparse.Namespace) -> None:
    """In the child: one JSON line for each case, the name of the one that runs on a line before it."""
    import torch

    from .check import check

    torch.set_num_threads(1)
    for case in cases_of(args.database[0], set(args.name), args.samples):
        print(json.dumps({"running": case.name}), flush=True)
        print(json.dumps(dataclasses.asdict(check(case, dynamic=True if args.dynamic else None))), flush=True)


def chunks(items: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def run_chunk(database: str, names: list[str], args: argparse.Namespace) -> Iterator[dict]:
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.torchdb", "--child", "--database", database]
    command += [f"--samples={args.samples}"] if args.samples else []
    command += ["--dynamic"] if args.dynamic else []
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([*command, "--name", *names], stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ)
        running = names[0]
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith("{"):
                continue
            found = json.loads(line)
            if "running" in found:
                running = found["running"]
            else:
                yield {"database": database, **found}
        if process.wait():
            errors.seek(0)
            yield {"database": database, "name": running, "kind": "crash", "graphs": 0, "reasons": [], "raised": "",
                   "detail": errors.read()[-3000:], "wrong_fakes": []}


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.torchdb", description=__doc__)
    parser.add_argument("--database", nargs="*", default=list(DATABASES), choices=DATABASES)
    parser.add_argument("--name", nargs="*", default=[], help="only these operators, modules or optimizers")
    parser.add_argument("--samples", type=int, help="samples of each, dtype by dtype, at most (default: all)")
    parser.add_argument("--dynamic", action="store_true", help="with sizes as symbols")
    parser.add_argument("--out", type=pathlib.Path, help="a file for the verdicts, a JSON object on each line")
    parser.add_argument("--part", default="1/1", help="k/n: the k-th of n parts of the databases")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        work(args)
        return
    kth, of = map(int, args.part.split("/"))
    start, verdicts = time.time(), []
    counts: collections.Counter = collections.Counter()
    out = args.out.open("w") if args.out else None
    for database in args.database:
        known = names_of(database)
        wanted = [n for n in known if not args.name or n in args.name][kth - 1 :: of]
        for names in chunks(wanted, 40):
            for verdict in run_chunk(database, names, args):
                verdicts.append(verdict)
                counts[verdict["kind"]] += 1
                if out is not None:
                    out.write(json.dumps(verdict) + "\n")
                    out.flush()
                if verdict["kind"] not in ("same", "broken input"):
                    print(f"{verdict['kind']}: {verdict['name']}\n{verdict['detail'][:1200]}", flush=True)
            print(f"[{time.time() - start:.0f} s] {database} {names[-1]}: {dict(counts)}", file=sys.stderr, flush=True)
    print(summary(verdicts))
    sys.exit(any(v["kind"] not in ("same", "broken input") for v in verdicts))


if __name__ == "__main__":
    main()
