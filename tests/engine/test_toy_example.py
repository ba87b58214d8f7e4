"""The documents' own examples: the same graphs, in the same order, and the same shape of bytecode."""

import dis
import re

import pytest
import torch

import framegraft


def toy_source():
    def toy_example(a, b):
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    return toy_example


def fn_source():
    def fn(a, b):
        x = a + b
        x = x / 2.0
        if x.sum() < 0:
            return x * -1.0
        return x

    return fn


def table(gm):
    """The documents' tabular form without the columns that hold addresses."""

    def text(v):
        if isinstance(v, torch.fx.Node):
            return v.name
        if isinstance(v, (tuple, list)):
            return tuple(text(a) for a in v)
        return v

    rows = []
    for node in gm.graph.nodes:
        target = node.target if isinstance(node.target, str) else node.target.__name__
        rows.append((node.op, node.name, target, text(node.args), dict(node.kwargs)))
    return rows


class Recorder:
    def __init__(self):
        self.graphs, self.inputs = [], []

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        self.inputs.append(example_inputs)
        return gm.forward


POSITIVE = torch.linspace(0.5, 2, 10)
A = torch.linspace(-1, 1, 10)

TABLES = [
    [
        ("placeholder", "a", "a", (), {}),
        ("placeholder", "b", "b", (), {}),
        ("call_function", "abs_1", "abs", ("a",), {}),
        ("call_function", "add", "add", ("abs_1", 1), {}),
        ("call_function", "truediv", "truediv", ("a", "add"), {}),
        ("call_method", "sum_1", "sum", ("b",), {}),
        ("call_function", "lt", "lt", ("sum_1", 0), {}),
        ("output", "output", "output", (("truediv", "lt"),), {}),
    ],
    [
        ("placeholder", "b", "b", (), {}),
        ("placeholder", "x", "x", (), {}),
        ("call_function", "mul", "mul", ("x", "b"), {}),
        ("output", "output", "output", (("mul",),), {}),
    ],
    [
        ("placeholder", "b", "b", (), {}),
        ("placeholder", "x", "x", (), {}),
        ("call_function", "mul", "mul", ("b", -1), {}),
        ("call_function", "mul_1", "mul", ("x", "mul"), {}),
        ("output", "output", "output", (("mul_1",),), {}),
    ],
]


@pytest.fixture
def toy():
    framegraft.reset()
    recorder = Recorder()
    eager = toy_source()
    yield eager, framegraft.optimize(recorder)(toy_source()), recorder
    framegraft.reset()


def test_three_graphs_in_order_of_compilation(toy):
    eager, compiled, recorder = toy
    for sign in (1, -1, 1, -1):
        b = POSITIVE * sign
        assert torch.equal(compiled(A, b), eager(A, b))
    assert [table(gm) for gm in recorder.graphs] == TABLES
    assert [len(i) for i in recorder.inputs] == [2, 2, 2]
    assert all(isinstance(t, torch.Tensor) and t.shape == (10,) for inputs in recorder.inputs for t in inputs)


def test_hundred_random_calls_bit_for_bit(toy):
    eager, compiled, recorder = toy
    torch.manual_seed(0)
    for _ in range(100):
        a, b = torch.randn(10), torch.randn(10)
        kept = a.clone(), b.clone()
        assert framegraft.testing.same(compiled(a, b), eager(a, b))
        assert torch.equal(a, kept[0]) and torch.equal(b, kept[1])
    assert len(recorder.graphs) == 3


def test_modified_bytecode(toy):
    _, compiled, _ = toy
    compiled(A, POSITIVE)
    compiled(A, -POSITIVE)
    inner = framegraft.innermost_fn(compiled)
    entries = framegraft._debug_get_cache_entry_list(inner)
    assert len(entries) == 1
    code = entries[0].code
    instructions = list(dis.get_instructions(code))
    names = [i.opname for i in instructions]
    loaded = [i.argval for i in instructions if i.opname == "LOAD_GLOBAL"]
    assert re.fullmatch(r"__compiled_fn_\d+", loaded[0])
    resumes = [n for n in loaded if n.startswith("__resume_at_")]
    assert len(resumes) == 2
    assert all(re.fullmatch(r"__resume_at_\d+_\d+", n) for n in resumes)
    jump = next(i for i, n in enumerate(names) if re.fullmatch(r"POP_JUMP_(FORWARD_)?IF_FALSE", n))
    assert "UNPACK_SEQUENCE" in names[:jump]
    assert instructions[names.index("UNPACK_SEQUENCE")].argval == 2
    assert names.count("RETURN_VALUE") == 2
    original = {i.offset: i for i in dis.get_instructions(inner)}
    offsets = [int(n.split("_")[-2]) for n in resumes]
    branch = next(i for i in original.values() if "POP_JUMP" in i.opname)
    assert sorted(offsets)[1] == branch.argval
    assert branch.offset < sorted(offsets)[0] < branch.argval
    assert "abs" not in code.co_names


def test_numbers_in_names_start_at_zero_after_reset(toy):
    _, compiled, _ = toy
    compiled(A, POSITIVE)
    code = framegraft._debug_get_cache_entry_list(framegraft.innermost_fn(compiled))[0].code
    assert "__compiled_fn_0" in code.co_names
    assert [n.split("_")[-1] for n in code.co_names if n.startswith("__resume_at")] == ["01", "02"]


def test_resume_functions_are_captured_too(toy):
    _, compiled, _ = toy
    compiled(A, POSITIVE)
    inner = framegraft.innermost_fn(compiled)
    code = framegraft._debug_get_cache_entry_list(inner)[0].code
    resumes = [inner.__globals__[n] for n in code.co_names if n.startswith("__resume_at_")]
    counts = [len(framegraft._debug_get_cache_entry_list(framegraft.innermost_fn(r))) for r in resumes]
    assert sorted(counts) == [0, 1]


@pytest.mark.own_code
def test_resume_has_tracebacks_of_the_users_lines():
    def f(a):
        if a.sum() > 0:
            return a @ torch.ones(7, 7)  # fails
        return a

    compiled = framegraft.compile(f, backend="eager")
    with pytest.raises(RuntimeError) as caught:
        compiled(torch.ones(3))
    lines = [e.lineno for e in caught.traceback if str(e.path) == __file__]
    assert f.__code__.co_firstlineno + 1 in lines


def test_first_document_splits():
    recorder = Recorder()
    eager = fn_source()
    compiled = framegraft.optimize(recorder)(fn_source())
    for a, b in ((POSITIVE, A), (-POSITIVE, A), (POSITIVE, A)):
        assert torch.equal(compiled(a, b), eager(a, b))
    first, second = (table(gm) for gm in recorder.graphs)
    assert [r[1:4] for r in first] == [
        ("a", "a", ()),
        ("b", "b", ()),
        ("add", "add", ("a", "b")),
        ("truediv", "truediv", ("add", 2.0)),
        ("sum_1", "sum", ("truediv",)),
        ("lt", "lt", ("sum_1", 0)),
        ("output", "output", (("truediv", "lt"),)),
    ]
    assert [r[1:4] for r in second] == [
        ("x", "x", ()),
        ("mul", "mul", ("x", -1.0)),
        ("output", "output", (("mul",),)),
    ]


def test_first_documents_context_and_one_parameter_compiler():
    graphs = []

    def custom_compiler(graph: torch.fx.GraphModule):
        graphs.append(graph)
        return graph.forward

    fn = fn_source()
    with framegraft.optimize(custom_compiler):
        first = fn(POSITIVE, A)
        second = fn(-POSITIVE, A)
    assert len(graphs) == 2
    assert torch.equal(first, fn_source()(POSITIVE, A)) and torch.equal(second, fn_source()(-POSITIVE, A))
    with framegraft.run():
        fn(POSITIVE, A)
        fn(torch.ones(3), torch.ones(3))
    assert len(graphs) == 2
    fn(torch.ones(4), torch.ones(4))
    assert len(graphs) == 2


def test_nopython_names_the_branch():
    compiled = framegraft.optimize("eager", nopython=True)(toy_source())
    with pytest.raises(framegraft.exc.Unsupported) as caught:
        compiled(A, POSITIVE)
    error = caught.value
    assert error.reason_id and error.why and error.hint
    line = toy_source().__code__.co_firstlineno + 2
    assert any(file == __file__ and number == line for file, number, _ in error.user_stack)
    assert "if b.sum() < 0" in str(error)
