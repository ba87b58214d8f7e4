"""CPython's own language tests, each method with everything that it calls captured.

    python -m tests.cpython.run [--modules test_dict,test_with] [--out results.json]

The test files come from the ``test`` package of the running interpreter; they are run from copies, because files of the
standard library are never captured. Each module runs twice in processes of its own: as it is, and with
``framegraft.optimize("eager")`` around each method. What passes without and fails with is listed. Failures that are not in
``expected_failures.txt``, where each has its reason, make the command exit with 1.
"""

import argparse
import collections
import contextlib
import functools
import importlib
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import warnings
from typing import Any

MODULES = """
test_generators test_with test_exceptions test_dict test_list test_tuple test_set test_contextlib test_dataclasses test_enum test_functools
test_itertools test_collections test_operator test_iter test_scope test_descr test_patma test_grammar test_named_expressions test_bool
test_int test_float test_slice test_range test_enumerate test_property test_super test_decorators test_keywordonlyarg test_raise
test_except_star test_exception_group test_augassign test_binop test_compare test_richcmp test_contains test_userdict test_userlist
test_defaultdict test_ordered_dict test_deque test_fstring test_types test_typechecks test_abc test_copy test_heapq test_bisect
test_fractions test_class test_isinstance test_index test_builtin test_reprlib test_string test_unary test_opcodes test_global
test_dynamic test_funcattrs test_positional_only_arg test_coroutines test_unpack test_dictviews test_exception_variations test_exception_hierarchy
test_subclassinit test_metaclass test_bytes test_complex test_math test_string_literals test_weakset test_typing test_genericalias
test_contextlib_async test_asyncgen test_lambda test_call test_frame test_sys_setprofile test_pow test_long test_print test_hash test_sort
""".split()
EXPECTED = pathlib.Path(__file__).with_name("expected_failures.txt")
SECONDS = 20  # of the processor, for one method


class TooLong(BaseException):
    pass


def methods(suite: Any) -> list[unittest.TestCase]:
    found: list[unittest.TestCase] = []
    for item in suite:
        found += methods(item) if isinstance(item, unittest.TestSuite) else [item]
    return found


def run_module(name: str, captured: bool, skip: set[str]) -> None:
    """In a worker: one JSON line for each method of the module."""
    if captured:
        import framegraft  # noqa: PLC0415 - the plain run does without
    warnings.simplefilter("ignore")
    spec = importlib.util.find_spec(f"test.{name}")
    assert spec is not None and spec.origin is not None
    folder = tempfile.mkdtemp()
    if spec.submodule_search_locations is None:
        shutil.copy(spec.origin, folder)
    else:
        shutil.copytree(os.path.dirname(spec.origin), f"{folder}/{name}")
    sys.path.insert(0, folder)
    sys.argv = [name]
    module = importlib.import_module(name)

    def stop(*_: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, stop)
    signal.signal(signal.SIGALRM, stop)
    for case in methods(unittest.defaultTestLoader.loadTestsFromModule(module)):
        id = case.id()
        if id in skip or not hasattr(case, "_testMethodName"):
            continue
        print(json.dumps({"start": id}), file=sys.__stdout__, flush=True)
        if captured:
            framegraft.reset()
            _capture(case, framegraft)
        result = unittest.TestResult()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(10 * SECONDS)
        try:
            case.run(result)
            outcome = "skipped" if result.skipped else "passed" if result.wasSuccessful() else "failed"
            told = (result.failures or result.errors or [(None, "")])[0][1]
        except TooLong:
            outcome, told = "timeout", ""
        except BaseException as error:  # noqa: BLE001 - whatever a test does to its runner
            outcome, told = "died", repr(error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
        print(json.dumps({"id": id, "outcome": outcome, "told": told[-1500:]}), file=sys.__stdout__, flush=True)
    shutil.rmtree(folder, ignore_errors=True)


def _capture(case: unittest.TestCase, framegraft: Any) -> None:
    method = getattr(case, case._testMethodName)

    @functools.wraps(method)  # with marks, such as that of expectedFailure
    def captured_method() -> None:
        with framegraft.optimize("eager"):
            method()

    setattr(case, case._testMethodName, captured_method)


def results(name: str, captured: bool) -> dict[str, tuple[str, str]]:
    """Outcome of each method; a process that dies is started again behind the method that killed it."""
    found: dict[str, tuple[str, str]] = {}
    while True:
        command = [sys.executable, "-m", "tests.cpython.run", "--worker", name, "captured" if captured else "plain", json.dumps(sorted(found))]
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                       env={**os.environ, "PYTHONHASHSEED": "0"})
            told = -1
            while process.poll() is None and os.fstat(out.fileno()).st_size != told:  # a method that stops itself tells so
                told = os.fstat(out.fileno()).st_size
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(400)
            process.kill()
            process.wait()
            out.seek(0)
            current = None
            for line in out.read().splitlines():
                if not line.startswith('{"'):
                    continue
                told = json.loads(line)
                if "start" in told:
                    current = told["start"]
                else:
                    found[told["id"]] = (told["outcome"], told["told"])
                    current = None
        if current is None:
            return found
        found[current] = ("crashed", f"exit status {process.returncode}")


def compare(name: str) -> dict[str, Any]:
    plain, captured = results(name, False), results(name, True)
    passing = [i for i, (outcome, _) in plain.items() if outcome == "passed"]
    worse = {i: captured.get(i, ("missing", "")) for i in passing if captured.get(i, ("missing", ""))[0] != "passed"}
    return {"module": name, "passing": len(passing), "worse": worse}


def expected_failures() -> dict[str, str]:
    """The reason for each method that is known to fail: a line of the file is a reason with a colon, or a method below it."""
    found, reason = {}, ""
    for line in EXPECTED.read_text().splitlines():
        if line.startswith("    "):
            found[line.strip()] = reason
        elif line and not line.startswith("#"):
            reason = line.removesuffix(":")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cpython.run")
    parser.add_argument("--modules", default=",".join(MODULES))
    parser.add_argument("--out", default="")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        run_module(args.worker[0], args.worker[1] == "captured", set(json.loads(args.worker[2])))
        return 0
    total: collections.Counter = collections.Counter()
    every, unexpected = [], []
    known = expected_failures()
    for name in args.modules.split(","):
        if importlib.util.find_spec(f"test.{name}") is None:
            continue
        told = compare(name)
        every.append(told)
        total["passing"] += told["passing"]
        total["worse"] += len(told["worse"])
        print(f"{name}: {told['passing']} pass without, {len(told['worse'])} of them fail with", flush=True)
        for id, (outcome, text) in told["worse"].items():
            if id not in known:
                unexpected.append(id)
            print(f"    {'expected ' if id in known else ''}{outcome} {id}: {text.strip().splitlines()[-1][:200] if text.strip() else ''}", flush=True)
    print(f"{total['worse']} of {total['passing']} fail only with capture ({100 * total['worse'] / max(1, total['passing']):.2f} %)")
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(every, indent=1))
    if unexpected:
        print(f"{len(unexpected)} of them are not expected: {', '.join(unexpected)}")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
