"""The tests of any library that uses torch, each with everything that it calls captured.

    python tests/suites/run.py [--backend eager] [--out differs.json] FILES_OR_FOLDERS [-- PYTEST_ARGUMENTS]

They run twice, each time in one process: as they are, and with ``framegraft.optimize(backend)`` around each test. What passes
without and fails with is listed. A process that dies names the test that killed it and goes on behind it.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def outcomes(paths: list[str], backend: str, rest: list[str]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "outcomes")
        while True:
            file.write_text("")
            command = [sys.executable, "-m", "pytest", "-q", "-p", "captured_tests", "--outcomes", str(file), *paths, *rest]
            command += ["--captured", backend] if backend else []
            command += [argument for id in found if found[id][0] == "crashed" for argument in ("--deselect", id)]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]), "PYTHONHASHSEED": "0"}
            code = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL).returncode
            current = ""
            for line in file.read_text().splitlines():
                told = json.loads(line)
                current = told["id"] if told["outcome"] == "started" else ""
                if not current:
                    found[told["id"]] = (told["outcome"], told["told"])
            if not current:
                return found
            found[current] = ("crashed", f"exit status {code}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/suites/run.py")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--out", default="")
    own, rest = sys.argv[1:], []
    if "--" in own:
        rest = own[own.index("--") + 1 :]
        own = own[: own.index("--")]
    args = parser.parse_args(own)
    for path in args.paths:
        if not os.path.exists(path.split("::")[0]):
            parser.error(f"no such file or folder: {path}")
    plain, captured = outcomes(args.paths, "", rest), outcomes(args.paths, args.backend, rest)
    passing = [id for id, (outcome, _) in plain.items() if outcome == "passed"]
    worse = {id: captured.get(id, ("missing", "")) for id in passing if captured.get(id, ("missing", ""))[0] != "passed"}
    for id, (outcome, told) in worse.items():
        print(f"    {outcome} {id}: {told.strip().splitlines()[-1][:200] if told.strip() else ''}")
    if not passing:
        print("no test passes without capture: run pytest by itself to see why")
    print(f"{len(worse)} of {len(passing)} tests that pass without capture fail with it")
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(worse, indent=1))
    return 0 if passing and not worse else 1


if __name__ == "__main__":
    sys.exit(main())
