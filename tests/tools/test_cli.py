"""The command line as a user meets it: output, exit codes, errors."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import framegraft
from framegraft.reasons import REASONS
from framegraft.tools import cli, targets

SCRIPT = '''
import sys
import torch

class Box:
    def scaled(self, x, factor=2):
        return x * factor

box = Box()

@torch.compile(backend="eager")
def compiled(x):
    y = torch.relu(x)
    print("inside", y.shape[0])
    return y + 1

def plain(x):
    return torch.sin(x) * 2

def failing(x):
    raise ValueError("no")

if __name__ == "__main__":
    print(sys.argv[1:], float(compiled(torch.ones(3)).sum()), float(plain(torch.ones(3)).sum()) > 0)
    if "exit" in sys.argv:
        sys.exit(5)
    if "fail" in sys.argv:
        failing(1)
'''


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("program.py").write_text(SCRIPT)
    return "program.py"


def framegraft_command(*arguments, **more):
    source = str(pathlib.Path(framegraft.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])} | more
    return subprocess.run([sys.executable, "-m", "framegraft", *arguments], capture_output=True, text=True, timeout=240, env=environment)


def in_process(capsys, *arguments):
    try:
        code = cli.main(arguments)
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_help_of_every_command(capsys):
    code, out, _ = in_process(capsys, "--help")
    assert code == 0
    for name in ("run", "explain", "decompile", "backends", "reasons", "doctor"):
        assert name in out
        code, text, _ = in_process(capsys, name, "--help")
        assert code == 0 and "usage: framegraft" in text


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["explain"], ["run"], ["decompile", "--what", "x"]])
def test_a_wrong_command_line(capsys, arguments):
    code, out, err = in_process(capsys, *arguments)
    assert code == 2 and not out and "usage: framegraft" in err


def test_explain(capsys, script):
    code, out, _ = in_process(capsys, "explain", f"{script}:compiled", "--args", "torch.ones(3)")
    assert code == 0
    for part in ("1 graph break", "print_call", 'print("inside", y.shape[0])', "Hint:"):
        assert part in out
    code, out, _ = in_process(capsys, "explain", f"{script}:box.scaled", "--args", "torch.ones(3), factor=3", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["graphs"] == found["operations"] == 1 and found["coverage"]["by_count"] == 1.0 and found["breaks"] == []


def test_explain_says_what_is_wrong(capsys, script):
    for target, word in ((f"{script}:plane", "did you mean plain"), (script, "names no function"), ("nowhere.py:f", "no file"),
                         ("no.such.module:f", "No module named"), (f"{script}:sys", "not something to call")):
        code, out, err = in_process(capsys, "explain", target)
        assert code == 2 and not out and word in err.replace("\n", " "), err
    code, _, err = in_process(capsys, "explain", f"{script}:plain", "--args", "undefined + 1")
    assert code == 2 and "NameError" in err
    code, _, err = in_process(capsys, "explain", f"{script}:failing", "--args", "1")
    assert code == 1 and "ValueError: no" in err and "program.py" in err and "cli.py" not in err


@pytest.mark.parametrize("arguments,word", [
    (["explain", "folder:f"], "folder has no function f"), (["explain", "./folder:f"], "./folder is a folder"),
    (["explain", "...:f"], "names no file or module"), (["explain", ":f"], "names no file or module"),
    (["explain", "wrong.py:f"], "wrong.py:1: "), (["explain", "no_such:f"], "No module named 'no_such'"),
    (["decompile", "./folder"], "./folder is a folder"), (["decompile", ":f"], "names no file or module"),
    (["decompile", "program.py:Box"], "name one inside of it: Box.scaled"), (["decompile", "math:sin"], "no Python code"),
    (["run", "folder"], "folder is a folder"), (["run", "-m", "no_such"], "no module no_such"),
    (["run", "-f", "program:", "program.py"], "--function 'program:' names no function"),
    (["run", "-b", "eagr", "program.py"], "--backend: no backend 'eagr'; did you mean 'eager'"),
    (["run", "-b", "of_nobody", "program.py"], "--backend: no backend 'of_nobody'. There are"),
    (["run", "-o", "file/page.html", "program.py"], "--output file/page.html cannot be written"),
    (["run", "--json", "folder", "program.py"], "--json folder cannot be written"),
    (["replay", "file"], "file is no recorded frame"), (["replay", "folder"], "no recording folder/frame.pkl"),
    (["minify", "nowhere"], "no recording nowhere"),
])
def test_what_is_wrong_is_named_before_anything_runs(capsys, script, arguments, word):
    pathlib.Path("folder").mkdir()
    pathlib.Path("file").touch()
    pathlib.Path("wrong.py").write_text("def f(:\n")
    code, out, err = in_process(capsys, *arguments)
    assert code == 2 and not out and word in err, err


@pytest.mark.parametrize("text,word", [
    ("import nothing_of_that_name", "ModuleNotFoundError"), ("import sys\nsys.exit(3)", 'if __name__ == "__main__"'), ("1 / 0", "ZeroDivisionError"),
])
def test_explain_of_a_module_that_fails(capsys, tmp_path, text, word):
    (tmp_path / "failing_module.py").write_text(text)
    code, out, err = in_process(capsys, "explain", f"{tmp_path / 'failing_module.py'}:f")
    assert code == 1 and not out and word in err and "while it was loaded" in err and "targets.py" not in err


def test_a_function_that_is_never_called_is_told(capsys, script):
    code, _, err = in_process(capsys, "run", "--no-report", "-f", "nothing", "-f", "plain", "-f", "program.py:plain", script)
    assert code == 0 and "--function nothing: no function of that name was called" in err and "plain" not in err


@pytest.mark.parametrize("variable", ["FRAMEGRAFT_REPORT", "FRAMEGRAFT_TRACE", "FRAMEGRAFT_LOGS"])
def test_variables_that_cannot_be_followed(tmp_path, variable):
    (tmp_path / "file").touch()
    done = framegraft_command("doctor", **{variable: str(tmp_path / "file" / "deep" if variable != "FRAMEGRAFT_LOGS" else "nonsense")})
    assert done.returncode != 0 and f"ConfigError: {variable}" in done.stderr


def test_decompile_runs_nothing(capsys, tmp_path):
    path = tmp_path / "loud.py"
    path.write_text("import sys\nsys.exit('run')\ndef f(x):\n    return [y for y in x if y]\nclass C:\n    def m(self):\n        pass\n")
    code, out, _ = in_process(capsys, "decompile", f"{path}:f")
    assert code == 0 and "[y for y in x if y]" in out
    code, out, _ = in_process(capsys, "decompile", f"{path}:m")
    assert code == 0 and "def m(self)" in out
    code, out, _ = in_process(capsys, "decompile", str(path))
    assert code == 0 and "def f(x)" in out and "def m" not in out
    code, out, _ = in_process(capsys, "decompile", "textwrap:dedent")
    assert code == 0 and out.startswith("def dedent(text):")
    code, _, err = in_process(capsys, "decompile", f"{path}:g")
    assert code == 2 and "no function g" in err
    (tmp_path / "bad.py").write_text("def f(:\n")
    code, _, err = in_process(capsys, "decompile", f"{tmp_path / 'bad.py'}:f")
    assert code == 2 and "bad.py:1" in err.replace("\n", "")


def test_backends(capsys):
    code, out, _ = in_process(capsys, "backends")
    assert code == 0 and "inductor" in out and "print" not in out.split()
    code, out, _ = in_process(capsys, "backends", "--all")
    assert code == 0 and "print" in out.split()


def test_reasons(capsys):
    code, out, _ = in_process(capsys, "reasons")
    assert code == 0 and all(name in out for name in REASONS)
    code, out, _ = in_process(capsys, "reasons", "tensor_item", "--json")
    (found,) = json.loads(out)
    assert code == 0 and found["id"] == "tensor_item" and found["why"] and found["hint"]
    code, out, err = in_process(capsys, "reasons", "tensor_items")
    assert code == 2 and not out and "did you mean tensor_item" in err


def test_doctor(capsys):
    code, out, _ = in_process(capsys, "doctor", "--json")
    found = {finding["topic"]: finding for finding in json.loads(out)}
    assert found["capture"]["ok"] and found["calibration"]["ok"] and "torch" in found
    assert code == (1 if any(f["ok"] is False for f in found.values()) else 0)
    assert "calibration" in in_process(capsys, "doctor")[1]


def test_doctor_without_calibration(script):
    done = framegraft_command("doctor", FRAMEGRAFT_NO_CALIBRATION="1")
    assert done.returncode == 1 and "FRAMEGRAFT_NO_CALIBRATION=1" in done.stdout.replace("\n", "")


def test_run(script):
    done = framegraft_command("run", "-o", "page.html", "--json", "page.json", script, "one", "--two")
    assert done.returncode == 0, done.stderr
    assert "['one', '--two'] 6.0 True" in done.stdout and "inside 3" in done.stdout
    assert "report in" in done.stderr
    found = json.loads(pathlib.Path("page.json").read_text())
    assert found["program"]["arguments"] == [script, "one", "--two"]
    assert [f["name"] for f in found["functions"]] == ["compiled"]
    assert found["totals"]["breaks"] == 1 and "print_call" in pathlib.Path("page.html").read_text()


def test_run_captures_named_functions(script):
    done = framegraft_command("run", "--no-report", "--json", "-", "-f", "plain", script)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert sorted(f["name"] for f in found["functions"]) == ["compiled", "plain"]
    assert not pathlib.Path("framegraft_report.html").exists()


def test_run_as_a_module(script):
    done = framegraft_command("run", "--no-report", "-m", "program", "x")
    assert done.returncode == 0 and "['x'] 6.0" in done.stdout, done.stderr


def test_run_ends_as_the_program_does(script):
    assert framegraft_command("run", "-o", "a.html", script, "exit").returncode == 5
    done = framegraft_command("run", "-o", "b.html", script, "fail")
    assert done.returncode == 1 and "ValueError: no" in done.stderr and "runpy" not in done.stderr
    assert pathlib.Path("a.html").exists() and pathlib.Path("b.html").exists()


def test_run_says_what_is_wrong(capsys, script):
    assert in_process(capsys, "run", "nowhere.py")[0] == 2
    assert in_process(capsys, "run", "-m", "no.such.module")[0] == 2
    code, _, err = in_process(capsys, "run", "-b", "eagr", script)
    assert code == 2 and "did you mean 'eager'" in err.replace("\n", " ")


def test_targets():
    assert targets.split("a/b.py:f") == ("a/b.py", "f")
    assert targets.split("pkg.mod:C.m") == ("pkg.mod", "C.m")
    assert targets.split("file.py") == ("file.py", "")
    assert targets.split(r"C:\x.py") == (r"C:\x.py", "")


def test_minify_and_replay(tmp_path):
    code = ("import torch, framegraft\n"
            "def f(x):\n    print('inside')\n    return torch.relu(x) + 1\n"
            "with framegraft.prepare_debug('dump', frames=True):\n    framegraft.compile(f, backend='eager')(torch.ones(3))\n")
    (tmp_path / "program.py").write_text(code)
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True)
    folder = str(next(path.parent for path in sorted((tmp_path / "dump").rglob("frame.pkl"))))
    told = framegraft_command("replay", folder)
    assert told.returncode == 0 and "inside" in told.stdout and "print_call" in told.stdout, told
    assert framegraft_command("replay", folder, "-b", "eager").returncode == 0
    assert framegraft_command("replay", str(tmp_path / "none")).returncode == 2
    told = framegraft_command("minify", folder, "-b", "eager")
    assert told.returncode == 1 and "does what eager mode does" in told.stderr, told
    assert framegraft_command("minify", folder, "-b", "nothing").returncode == 2
