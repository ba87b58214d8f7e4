"""Minifier, repro folders and replay: small, and without the user's program."""

import dataclasses
import pathlib
import subprocess
import sys
import textwrap

import pytest
import torch

import framegraft
from framegraft.tools import byvalue, frames, minify


def crashes_on_sin(gm, inputs):
    """A backend that crashes on a certain operation."""
    if any(node.target in (torch.sin, "sin") for node in gm.graph.nodes):
        raise NotImplementedError("no sin here")
    return gm.forward


def inaccurate_cos(gm, inputs):
    """A backend that is inaccurate on a certain operation."""
    for node in gm.graph.nodes:
        if node.target in (torch.cos, "cos"):
            with gm.graph.inserting_after(node):
                off = gm.graph.call_function(torch.add, (node, 0.01))
            node.replace_all_uses_with(off, delete_user_cb=lambda user: user is not off)
    gm.recompile()
    return gm.forward


def model(x, w):
    y = torch.relu(x @ w).sin() + 1
    z = (y * 2).cos().sum(0)
    return torch.softmax(z, 0) + z, y.mean()


def inputs():
    return torch.randn(4, 3), torch.randn(3, 5)


@pytest.mark.parametrize("backend,kind,op", [(crashes_on_sin, "NotImplementedError", "sin"), (inaccurate_cos, "wrong", "cos")])
def test_shrinks_to_the_operation(backend, kind, op, tmp_path):
    found = framegraft.minify(model, *inputs(), backend=backend, path=tmp_path / "small.py")
    assert found.failure.kind == kind and found.operations_before >= 8 and found.operations <= 2
    assert op in {str(node.target).rpartition(".")[2] for node in found.module.graph.nodes} | {getattr(n.target, "__name__", "") for n in found.module.graph.nodes}
    done = subprocess.run([sys.executable, str(found.path)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and f"{backend.__name__!r} fails" in done.stdout, done


def test_a_backend_that_is_right():
    with pytest.raises(framegraft.exc.FramegraftError, match="does what eager mode does"):
        framegraft.minify(model, *inputs(), backend="eager")


def test_a_failure_that_depends_on_the_values(tmp_path):
    def wrong_above_ten(gm, inputs):
        return lambda *args: [out + (out > 10) if isinstance(out, torch.Tensor) else out for out in gm.forward(*args)]

    found = framegraft.minify(lambda x: x.relu() + 1, torch.tensor([3.0, 90.0]), backend=wrong_above_ten, path=tmp_path / "s.py")
    assert (tmp_path / "s.pt").exists()
    assert subprocess.run([sys.executable, str(found.path)], capture_output=True).returncode == 1


@pytest.mark.own_code  # counts graphs behind breaks
def test_the_second_graph_of_a_broken_function(tmp_path):
    def broken(x):
        y = x + 1
        print("between")
        return y.sin() * 2

    found = framegraft.minify(broken, torch.ones(2), backend=crashes_on_sin, path=tmp_path / "s.py")
    assert found.operations == 1


def test_a_suppressed_failure_leaves_a_folder(tmp_path):
    framegraft.config.suppress_errors = True
    framegraft.config.repro_directory = str(tmp_path / "repros")
    x, w = inputs()
    with pytest.warns(UserWarning, match="To see it again: python .*graph.py"):
        result = framegraft.compile(model, backend=crashes_on_sin)(x, w)
    assert torch.equal(result[1], model(x, w)[1])
    (folder,) = (tmp_path / "repros").iterdir()
    assert "no sin here" in (folder / "error.txt").read_text()
    done = subprocess.run([sys.executable, str(folder / "graph.py")], capture_output=True, text=True)
    assert done.returncode == 1 and "no sin here" in done.stdout, done
    recorded = frames.load(folder / "frame.pkl")
    assert recorded.told["function"] == "model" and "no sin here" in recorded.told["error"]
    assert torch.equal(recorded.call()[1], result[1])
    with pytest.raises(framegraft.exc.BackendCompilerFailed, match="no sin here"):
        framegraft.config.suppress_errors = False
        framegraft.replay(folder / "frame.pkl", backend=crashes_on_sin)


def test_an_internal_error_leaves_a_folder(tmp_path, monkeypatch):
    from framegraft.run import conversion

    framegraft.config.raise_internal_errors = False
    framegraft.config.repro_directory = str(tmp_path)
    monkeypatch.setattr(conversion.Conversion, "run", lambda self: 1 / 0)
    with pytest.warns(UserWarning, match="framegraft replay"):
        framegraft.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    (folder,) = tmp_path.iterdir()
    assert "ZeroDivisionError" in (folder / "error.txt").read_text() and (folder / "frame.pkl").exists()


PROGRAM = '''
import dataclasses, helpers, torch, framegraft

SCALE = 3.0

@dataclasses.dataclass
class Options:
    shift: float = 1.0

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.options = Options(2.0)

    def forward(self, x, *more, scale=SCALE, **rest):
        def shifted(t):
            return t + self.options.shift
        return helpers.twice(shifted(self.inner(x))) * scale + len(more) + rest["n"]

torch.manual_seed(0)
layer = Layer()
with framegraft.prepare_debug("dump", frames=True):
    out = framegraft.compile(layer.forward, backend="eager")(torch.ones(2, 3), 1, 2, n=4)
torch.save(out, "out.pt")
'''


def test_replay_without_the_program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "helpers.py").write_text("FACTOR = 2\n\ndef twice(x):\n    return x * FACTOR\n")
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True)
    (tmp_path / "program.py").unlink()
    (tmp_path / "helpers.py").unlink()
    (path,) = (tmp_path / "dump").rglob("frame.pkl")
    assert torch.allclose(framegraft.replay(path), torch.load(tmp_path / "out.pt"))
    assert framegraft.stats()["graphs"] == 1
    assert torch.equal(framegraft.replay(path, backend=None), framegraft.replay(path, fullgraph=True))


def test_what_is_no_recording(tmp_path):
    (tmp_path / "x.pkl").write_bytes(b"nothing")
    with pytest.raises(framegraft.exc.FramegraftError, match="no recorded frame"):
        framegraft.replay(tmp_path / "x.pkl")


def test_what_cannot_be_recorded(tmp_path):
    def f(x, file):
        return x + 1

    with open(__file__) as file, framegraft.prepare_debug(tmp_path, frames=True):
        framegraft.compile(f, backend="eager")(torch.ones(2), file)
    (told,) = tmp_path.rglob("frame.txt")
    assert "cannot be recorded" in told.read_text()


class Base:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a

    @property
    def doubled(self):
        return 2 * self.a

    @staticmethod
    def fixed():
        return 7


class Derived(Base):
    def __init__(self, a):
        super().__init__(a)
        self.me = self

    @classmethod
    def make(cls):
        return cls(5)


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def test_objects_by_value():
    again = byvalue.loads(byvalue.dumps((Derived.make(), even, Derived, textwrap.dedent, torch.relu)))
    thing, is_even, cls, dedent, relu = again
    assert type(thing) is cls is not Derived and thing.doubled == 10 and thing.me is thing and cls.fixed() == 7 and cls.make().a == 5
    assert is_even(10) and not is_even(7) and is_even is not even
    assert dedent is textwrap.dedent and relu is torch.relu
