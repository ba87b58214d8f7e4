"""``python -m tests.fuzz --count 20000 --seed 0``: random programs in worker processes; failing ones are shrunk and written."""

import argparse
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import torch

from ..decompile.swap import MODES
from .execute import examine
from .shrink import shrink
from .wide import generate

DIED = "the interpreter died"
BATCH = 500  # programs for one worker process
MOST_MEMORY = 8 << 30


def work(first: int, last: int, decompiled: str | None) -> None:
    """A worker: one line of JSON before and after each program."""
    if torch.get_default_device().type == "cpu":
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))  # a program that grows without end ends alone
    for seed in range(first, last):
        print(json.dumps({"start": seed}), flush=True)
        try:
            text = generate(seed)
            compile(text, "<generated>", "exec")
        except Exception as error:
            print(json.dumps({"seed": seed, "skipped": repr(error)}), flush=True)
            continue
        print(json.dumps({"seed": seed, "found": examine(text, seed, decompiled=decompiled)}), flush=True)


def kind_of(found: str) -> str:
    """What a difference is about: shrinking must not go from one to another."""
    place = re.match(r"(\[\w+\]) at /(\d)/1/(\d)", found)
    if place is None:
        return found.split("\n")[0][:120]
    known = [word for word in ("Error", "Tensor", "iterator", "same as", "int", "str") if word in found]
    return f"{place[1]} {place[3]} {known[:2]}"


class Pool:
    """Keeps ``jobs`` workers busy on batches of seeds."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.todo = [(s, min(s + BATCH, args.seed + args.count)) for s in range(args.seed, args.seed + args.count, BATCH)][::-1]
        self.running: list[tuple[subprocess.Popen, Any, tuple[int, int]]] = []
        self.failures: dict[int, str] = {}
        self.done = self.skipped = 0

    def run(self) -> None:
        begun, told = time.monotonic(), time.monotonic()
        while self.todo or self.running:
            while self.todo and len(self.running) < self.args.jobs:
                self.start(*self.todo.pop())
            for job in list(self.running):
                if job[0].poll() is not None:
                    self.running.remove(job)
                    self.collect(*job)
            time.sleep(0.2)
            if time.monotonic() - told > 30:
                told = time.monotonic()
                print(f"{self.done} programs, {len(self.failures)} differ, {told - begun:.0f} s", file=sys.stderr, flush=True)

    def start(self, first: int, last: int) -> None:
        log = open(f"{self.args.out}/worker_{first}.log", "w+")  # noqa: SIM115 - closed in collect
        command = [sys.executable, "-m", "tests.fuzz", "--worker", str(first), str(last)]
        for name in ("decompiled", "device"):
            if getattr(self.args, name):
                command += [f"--{name}", getattr(self.args, name)]
        self.running.append((subprocess.Popen(command, stdout=log, stderr=subprocess.DEVNULL), log, (first, last)))

    def collect(self, process: subprocess.Popen, log: Any, batch: tuple[int, int]) -> None:
        log.seek(0)
        current = batch[0]
        for line in log.read().splitlines():
            if not line.startswith('{"s'):
                continue
            told = json.loads(line)
            if "start" in told:
                current = told["start"]
                continue
            self.done += 1
            self.skipped += "skipped" in told
            if told.get("found"):
                self.failed(told["seed"], told["found"])
        log.close()
        pathlib.Path(log.name).unlink()
        if process.returncode != 0:
            self.failed(current, f"{DIED}: {process.returncode}")
            if current + 1 < batch[1]:
                self.todo.append((current + 1, batch[1]))

    def failed(self, seed: int, found: str) -> None:
        self.failures[seed] = found
        pathlib.Path(self.args.out, f"seed_{seed}.txt").write_text(f"{found}\n")
        print(f"seed {seed}: {found[:700]}", flush=True)


def write_shrunk(out: str, seed: int, found: str, seconds: float, decompiled: str | None) -> None:
    text = generate(seed)
    kind = kind_of(found)

    def fails(candidate: str) -> bool:
        got = examined_apart(candidate, seed, decompiled) if kind.startswith(DIED) else examine(candidate, seed, decompiled=decompiled)
        return got is not None and kind_of(got) == kind

    small = shrink(text, fails, seconds)
    what = found if kind.startswith(DIED) else examine(small, seed, decompiled=decompiled)
    pathlib.Path(out, f"seed_{seed}.py").write_text(f'"""{what}\n"""\n{small}\n')


def examined_apart(text: str, seed: int, decompiled: str | None) -> str | None:
    """``examine`` in a process of its own, which may die."""
    with tempfile.NamedTemporaryFile("w+", suffix=".py") as file:
        file.write(text)
        file.flush()
        command = [sys.executable, "-m", "tests.fuzz", "--seed", str(seed), "--file", file.name]
        command += ["--decompiled", decompiled] if decompiled else []
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return f"{DIED}: {done.returncode}" if done.returncode < 0 else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", default="fuzz_out", help="folder for failing programs")
    parser.add_argument("--shrink", type=float, default=0, help="seconds to spend on making each failing program smaller")
    parser.add_argument("--show", action="store_true", help="print the program of --seed, and its difference")
    parser.add_argument("--file", help="run this program in the way of --seed")
    parser.add_argument("--decompiled", choices=MODES, help="run what code decompiles to in its place (see tests/decompile/swap.py)")
    parser.add_argument("--device", help="the default device of the programs, cuda for instance")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_default_device(args.device)
    if args.worker:
        work(*args.worker, args.decompiled)
        return 0
    pathlib.Path(args.out).mkdir(parents=True, exist_ok=True)
    if args.show or args.file:
        text = pathlib.Path(args.file).read_text() if args.file else generate(args.seed)
        found = examine(text, args.seed, decompiled=args.decompiled)
        print(text if args.show else "")
        print("difference:", found)
        if found and args.shrink:
            write_shrunk(args.out, args.seed, found, args.shrink, args.decompiled)
        return bool(found)
    pool = Pool(args)
    pool.run()
    if args.shrink:
        for seed, found in pool.failures.items():
            write_shrunk(args.out, seed, found, args.shrink, args.decompiled)
    print(f"{pool.done} programs, {pool.skipped} skipped, {len(pool.failures)} differ: {sorted(pool.failures)[:50]}")
    return bool(pool.failures)


if __name__ == "__main__":
    sys.exit(main())
