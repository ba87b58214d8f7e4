"""prepare_debug, debug, install: files that are right, run by themselves, and stop where a breakpoint says."""

import ast
import pdb
import subprocess
import sys
import textwrap
import traceback

import pytest
import torch

import framegraft
from framegraft.decompiler import DecompileError
from framegraft.tools import sources
from framegraft.tools.debug import code_from_file


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, a, b):
        x = a / (torch.abs(a) + 1)
        x = self.linear(x)
        if b.sum() < 0:
            b = b * -1
        return x * b


X = torch.linspace(-1, 1, 9).reshape(3, 3)


def double(x):
    y = torch.relu(x)
    return y * 2


def folders(path):
    return sorted(p for p in path.iterdir() if p.is_dir())


def test_files_of_each_entry(tmp_path):
    model = Model()
    compiled = framegraft.compile(model, backend="eager")
    with framegraft.prepare_debug(tmp_path) as dump:
        compiled(X, X)
        compiled(X, -X - 1)
    assert sorted(dump.written) == folders(tmp_path)
    assert len(dump.written) == len(framegraft.status().captures) >= 3
    for folder in dump.written:
        names = {p.name for p in folder.iterdir()}
        assert {"original.py", "transformed.py", "guards.py"} <= names
        for path in folder.glob("*.py"):
            ast.parse(path.read_text())
    first = next(f for f in dump.written if (f / "break.txt").exists())
    broken = (first / "break.txt").read_text()
    assert "data_dependent_branch" in broken and "if b.sum() < 0:" in broken
    assert list(first.glob("__resume_at_*.py"))
    guards = (first / "guards.py").read_text()
    assert guards.count("return False  # ") == framegraft.status().captures[0].guard_count
    assert "x = self.linear(x)" in guards
    graph = next(first.glob("__compiled_fn_*.py")).read_text()
    assert "x = a / (torch.abs(a) + 1)" in graph and 'f32[3, 3]' in graph
    resumed = [f for f in dump.written if "line" in f.name]
    assert resumed and "def forward(self, a, b):" in (resumed[0] / "original.py").read_text()


def test_graphs_run_by_themselves(tmp_path):
    def f(x, ids, mask):
        y = torch.where(mask, x, float("inf"))
        return torch.nn.functional.embedding(ids, y).to(torch.float64), x.t() @ x

    x = torch.randn(4, 3)[:, :2].requires_grad_()
    with framegraft.prepare_debug(tmp_path):
        framegraft.compile(f, backend="eager", fullgraph=True)(x, torch.tensor([1, 2]), torch.ones(4, 1, dtype=torch.bool))
    (path,) = tmp_path.glob("*/__compiled_fn_*.py")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "dtype=torch.float64" in done.stdout
    assert "requires_grad=True" in path.read_text() and "(4, 2), (3, 1)" in path.read_text()


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.inductor)])
def test_what_compilers_made(tmp_path, backend):
    model = torch.nn.Linear(3, 2)
    with framegraft.prepare_debug(tmp_path):
        framegraft.compile(model, backend=backend)(X).sum().backward()
    (folder,) = folders(tmp_path)
    names = {p.name for p in folder.iterdir()}
    assert {"aot_forward.py", "aot_backward.py", "aot_joint.py"} <= names
    if backend == "inductor":
        assert "inductor_output.py" in names
    assert "torch.ops.aten" in (folder / "aot_forward.py").read_text()


@pytest.mark.own_code
def test_nothing_is_switched_on_afterwards(tmp_path):
    from torch._logging._internal import trace_log

    from framegraft.run import records

    before = (list(trace_log.handlers), trace_log.level, trace_log.propagate)
    with framegraft.prepare_debug(tmp_path / "a"), framegraft.debug(tmp_path / "b"):
        framegraft.compile(double, backend="eager")(X)
    assert (list(trace_log.handlers), trace_log.level, trace_log.propagate) == before
    assert not framegraft.events.listeners() and not records._HOOKS


def test_results_are_the_same_inside(tmp_path):
    model = Model()
    compiled = framegraft.compile(model, backend="eager")
    calls = [(X, X), (X, -X - 1), (X[:2], X[:2])]
    with framegraft.prepare_debug(tmp_path):
        compiled(X, X)
    for _ in range(2):
        with framegraft.debug(tmp_path / "more"):
            for args in calls:
                assert torch.equal(compiled(*args), model(*args))
        for args in calls:
            assert torch.equal(compiled(*args), model(*args))


def stops(commands, run):
    """What pdb prints when it is fed with commands."""
    import io

    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("\n".join([*commands, "continue", ""])), stdout=out, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    debugger.runcall(run)
    return out.getvalue()


def doubles_and_tells(x):
    y = torch.relu(x)
    print("half")
    return y * 2


def counting(gm, inputs):
    operations = len(gm.graph.nodes)
    return gm.forward if operations else None


@pytest.mark.own_code  # a hook of the program is a place to step into, too
def test_a_step_into_a_call_that_is_captured_lands_in_the_function(no_listeners):
    compiled = framegraft.compile(doubles_and_tells, backend="eager")
    text = stops(["step", "where"], lambda: compiled(X))
    assert f"{__file__}({doubles_and_tells.__code__.co_firstlineno})doubles_and_tells()" in text, text
    assert "miss()" not in text


@pytest.mark.own_code  # a hook of the program is a place to step into, too
def test_a_breakpoint_in_a_backend_stops_while_it_compiles():
    compiled = framegraft.compile(double, backend=counting)
    line = counting.__code__.co_firstlineno + 2
    text = stops([f"break {__file__}:{line}", "continue", "p operations", "step", "step", "step", "where"], lambda: compiled(X))
    assert f"{__file__}({line})counting()" in text and "(Pdb) 4\n" in text, text
    assert ")forward()" in text and "convert" not in text, text  # the graph, which is all of the function


def line_of(path, text):
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize("before", [True, False])
def test_a_breakpoint_in_a_graph_stops_there(tmp_path, before):
    compiled = framegraft.compile(double, backend="eager")
    if before:
        with framegraft.prepare_debug(tmp_path):
            compiled(X)
        inside = framegraft.debug()
    else:
        inside = framegraft.debug(tmp_path)
        with inside:
            compiled(X)
    with inside:
        compiled(X)
        (path,) = tmp_path.glob("*/__compiled_fn_*.py")
        line = line_of(path, "relu * 2")
        text = stops([f"break {path}:{line}", "continue", "p tuple(relu.shape)", "where"], lambda: compiled(X))
    assert f"{path}({line})forward()" in text, text
    assert "(3, 3)" in text
    if before:  # what was made inside goes on as it was made
        assert str(path) not in stops([f"break {path}:{line}"], lambda: compiled(X)).replace(f"at {path}:{line}", "")


def test_edits_take_effect_and_go(tmp_path):
    compiled = framegraft.compile(double, backend="eager")
    with framegraft.prepare_debug(tmp_path):
        compiled(X)
    (path,) = tmp_path.glob("*/__compiled_fn_*.py")
    path.write_text(path.read_text().replace("relu * 2", "relu * 5"))
    with framegraft.debug():
        assert torch.equal(compiled(X), torch.relu(X) * 5)
    assert torch.equal(compiled(X), double(X))


def test_tracebacks_show_the_files(tmp_path):
    def f(x, i):
        x.add_(1)
        return torch.gather(x * 2, 0, i)

    compiled = framegraft.compile(f, backend="eager")
    with framegraft.debug(tmp_path):
        compiled(torch.ones(3), torch.tensor([1]))
        with pytest.raises(RuntimeError) as caught:
            compiled(torch.ones(3), torch.tensor([7]))
    shown = "".join(traceback.format_exception(caught.value))
    (path,) = tmp_path.glob("*/__compiled_fn_*.py")
    assert f'File "{path}"' in shown and "torch.gather(" in shown


def test_transformed_code_is_the_file_where_there_is_source(tmp_path):
    compiled = framegraft.compile(double, backend="eager")
    with framegraft.debug(tmp_path):
        compiled(X)
        (path,) = tmp_path.glob("*/transformed.py")
        entry = framegraft._debug_get_cache_entry_list(double)[0]
        assert entry.code.co_filename == str(path)
        line = line_of(path, "__compiled_fn")
        assert f"{path}({line})double()" in stops([f"break {path}:{line}", "continue"], lambda: compiled(X))


@pytest.mark.own_code  # the rest of a function has no graph in its own source
def test_a_breakpoint_behind_a_break_stops_in_the_file_of_what_goes_on(tmp_path):
    compiled = framegraft.compile(doubles_and_tells, backend="eager")
    with framegraft.debug(tmp_path):
        compiled(X)
        first, second = sorted(tmp_path.glob("*/transformed.py"))
        commands = [f"break {path}:{line_of(path, '__compiled_fn')}" for path in (first, second)]
        text = stops([*commands, "continue", "continue", "p tuple(y.shape)", "where"], lambda: compiled(X))
    assert text.index(f"> {first}({line_of(first, '__compiled_fn')})") < text.index(f"> {second}({line_of(second, '__compiled_fn')})")
    assert "(Pdb) (3, 3)" in text, text


def test_code_from_a_file_stands_for_the_other(tmp_path):
    marker = object()

    def f(a, b=1, *rest, key):
        total = a + b
        for item in rest:
            total += item
        return total, key, "MARK"

    code = f.__code__
    code = code.replace(co_consts=tuple(marker if c == "MARK" else c for c in code.co_consts))
    text = "# head\n\n" + sources.readable_code(code)[0]
    path = tmp_path / "f.py"
    path.write_text(text)
    made = code_from_file(path, text, code)
    assert made.co_filename == str(path) and made.co_firstlineno == 3
    f.__code__ = made
    assert f(1, 2, 3, key=4) == (6, 4, marker)
    assert code_from_file(path, "def g(): pass", code) is None


def test_errors_of_graphs_name_the_line(tmp_path):
    def f(x, i):
        x.add_(1)
        y = x * 2
        return torch.gather(y, 0, i)

    for backend in ("eager", "aot_eager"):
        compiled = framegraft.compile(f, backend=backend)
        compiled(torch.ones(3), torch.tensor([1]))
        with pytest.raises(RuntimeError) as caught:
            compiled(torch.ones(3), torch.tensor([7]))
        places = [(entry.filename, entry.lineno, entry.name, entry.line) for entry in traceback.extract_tb(caught.value.__traceback__)]
        assert (__file__, f.__code__.co_firstlineno + 3, "f", "return torch.gather(y, 0, i)") in places


def test_install_adds_source_to_the_bytecode_log(capsys):
    framegraft.install()
    try:
        framegraft.set_logs(bytecode=True)
        framegraft.compile(double, backend="eager")(X)
        text = capsys.readouterr().err
        assert text.count("possible source code:") == 1
        assert text.index("MODIFIED BYTECODE") < text.index("possible source code:")
    finally:
        framegraft.uninstall()
    framegraft.compile(double, backend="aot_eager")(X)
    assert "possible source" not in capsys.readouterr().err


def test_user_source_of_unknown_files():
    assert sources.user_source("<nowhere>", 3) == ("", 3)
    assert sources.user_source(__file__, 10**6)[0] == ""
    text, _ = sources.user_source(__file__, double.__code__.co_firstlineno)
    assert text == textwrap.dedent(text) and text.endswith("return y * 2\n")
    with pytest.raises(DecompileError):
        raise DecompileError("refused")
