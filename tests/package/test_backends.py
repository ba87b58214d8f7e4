import functools

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import framegraft
from framegraft import exc
from framegraft.backends import call_backend, list_backends, lookup_backend, make_backend, register_backend, registry
from framegraft.testing import CompileCounter, CompileCounterWithBackend, same


def graph_of(fn, *inputs):
    gm = torch.fx.symbolic_trace(fn)
    mode = FakeTensorMode()
    for node, value in zip(gm.graph.nodes, inputs, strict=False):
        node.meta["example_value"] = mode.from_tensor(value)
    return gm, list(inputs)


def program(a, b):
    return (torch.sin(a @ b) + a.abs().sum(), b + 1)


NAMES = ["eager", "print", "aot_eager", "aot_eager_decomp_partition", "ts"]
ALL = [*NAMES, pytest.param("inductor", marks=pytest.mark.inductor)]


@pytest.mark.parametrize("name", ALL)
def test_inference(name):
    gm, inputs = graph_of(program, torch.randn(4, 4), torch.randn(4, 4))
    results = call_backend(make_backend(name), gm, inputs)(*inputs)
    assert same(tuple(results), program(*inputs), exact=name != "inductor")


@pytest.mark.parametrize("name", ALL)
def test_training(name):
    a, b = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4)
    gm, inputs = graph_of(program, a, b)
    result, _ = call_backend(make_backend(name), gm, inputs)(*inputs)
    (got,) = torch.autograd.grad(result.sum(), a)
    (expected,) = torch.autograd.grad(program(a, b)[0].sum(), a)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("name", ["aot_eager", pytest.param("inductor", marks=pytest.mark.inductor)])
def test_mutation_of_an_input(name):
    def mutates(x):
        x.add_(1)
        return (x * 2,)

    x = torch.zeros(3)
    gm, inputs = graph_of(mutates, x)
    compiled = call_backend(make_backend(name), gm, inputs)
    assert torch.equal(x, torch.zeros(3)), "compiling must not run the graph"
    (result,) = compiled(x)
    assert torch.equal(x, torch.ones(3)) and torch.equal(result, torch.full((3,), 2.0))


@pytest.mark.inductor
def test_inductor_leaves_the_graph_alone():
    gm, inputs = graph_of(program, torch.randn(4, 4), torch.randn(4, 4))
    before = gm.code
    call_backend(lookup_backend("inductor"), gm, inputs)
    assert gm.code == before
    gm.graph.lint()


@pytest.mark.inductor
def test_inductor_modes_and_options():
    assert make_backend("inductor") == make_backend("inductor", mode="default")
    assert make_backend("inductor", mode="max-autotune-no-cudagraphs").config_patches["max_autotune"] is True
    assert make_backend("inductor", options={"max-autotune": True}).config_patches == {"max_autotune": True}
    for bad in ({"mode": "fastest"}, {"options": {"no_such": 1}}, {"options": {"max_autotune": "yes"}}):
        with pytest.raises(exc.ConfigError):
            make_backend("inductor", **bad)
    with pytest.raises(exc.ConfigError, match="not both"):
        make_backend("eager", mode="default", options={})


def test_mode_and_options_reach_other_backends():
    seen = {}

    def compiler(gm, inputs, mode=None, options=None):
        seen.update(mode=mode, options=options)
        return gm.forward

    call_backend(make_backend(compiler, mode="fast"), *graph_of(program, torch.ones(1, 1), torch.ones(1, 1)))
    assert seen == {"mode": "fast", "options": None}
    assert registry.backend_name(make_backend(compiler, options={"a": 1})).endswith("compiler")


def test_print_backend_prints(capsys):
    call_backend(lookup_backend("print"), *graph_of(program, torch.ones(1, 1), torch.ones(1, 1)))
    assert "call_function" in capsys.readouterr().out


@pytest.fixture
def registered():
    before = dict(registry._compilers), dict(registry._tags)
    yield
    for table, old in zip((registry._compilers, registry._tags), before, strict=True):
        table.clear()
        table.update(old)


def test_register_in_every_form(registered):
    @register_backend
    def plain_form(gm, inputs):
        return gm.forward

    @register_backend(name="keyword_form", tags=("debug",))
    def f(gm, inputs):
        return gm.forward

    @register_backend("positional_form")
    def g(gm, inputs):
        return gm.forward

    assert register_backend(CompileCounter(), name="object_form")
    assert lookup_backend("plain_form") is plain_form and lookup_backend("positional_form") is g
    assert "keyword_form" not in list_backends() and "keyword_form" in list_backends(exclude_tags=None)
    assert {"eager", "aot_eager", "inductor", "ts", "object_form"} <= set(list_backends())
    with pytest.raises(exc.InvalidBackend, match="already"):
        register_backend(g, name="eager")
    with pytest.raises(exc.InvalidBackend, match="already"):
        register_backend(f, name="plain_form")
    with pytest.raises(exc.InvalidBackend, match="name"):
        register_backend(CompileCounter())


def test_unknown_names_offer_near_ones():
    with pytest.raises(exc.InvalidBackend, match="did you mean 'inductor'"):
        lookup_backend("inducter")
    for bad in (3, None, "nothing_like_it"):
        with pytest.raises(exc.InvalidBackend):
            lookup_backend(bad)


def test_entry_points(monkeypatch, registered):
    class Entry:
        def load(self):
            return compiler

    def compiler(gm, inputs):
        return gm.forward

    monkeypatch.setattr(registry, "_entry_points", lambda: {"third_party": Entry()})
    assert "third_party" in list_backends()
    assert lookup_backend("third_party") is compiler


def test_one_parameter_compilers():
    class Compiler:
        def __call__(self, graph):
            return graph.forward

    gm, inputs = graph_of(program, torch.ones(2, 2), torch.ones(2, 2))
    for compiler in (lambda graph: graph.forward, Compiler(), functools.partial(lambda x, graph: graph.forward, 0)):
        assert call_backend(compiler, gm, inputs)(*inputs)


def test_failures_name_the_backend():
    gm, inputs = graph_of(program, torch.ones(2, 2), torch.ones(2, 2))

    def broken(gm, inputs):
        raise ValueError("bad graph")

    with pytest.raises(exc.BackendCompilerFailed, match=r"broken.*ValueError: bad graph") as caught:
        call_backend(broken, gm, inputs)
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(exc.BackendCompilerFailed, match="not callable"):
        call_backend(lambda gm, inputs: None, gm, inputs)


def test_counters():
    gm, inputs = graph_of(program, torch.ones(2, 2), torch.ones(2, 2))
    counter = CompileCounterWithBackend("eager")
    assert counter(gm, inputs)(*inputs)
    assert (counter.frame_count, counter.op_count, counter.graphs) == (1, 6, [gm])
    counter.clear()
    assert (counter.frame_count, counter.op_count, counter.graphs) == (0, 0, [])


@pytest.mark.parametrize("keywords, wanted", [
    ({"mode": "fastest"}, ["fastest", "default", "max-autotune", "reduce-overhead"]),
    ({"options": {"max_fusion_sise": 1}}, ["max_fusion_sise", "max_fusion_size", "epilogue_fusion"]),
    ({"options": {"epilogue_fusion": "yes"}}, ["epilogue_fusion", "bool", "str"]),
    ({"mode": "default", "options": {"epilogue_fusion": True}}, ["not both"]),
])
@pytest.mark.inductor
def test_wrong_modes_and_options_name_the_right_ones(keywords, wanted):
    with pytest.raises(exc.ConfigError) as caught:
        framegraft.compile(program, backend="inductor", **keywords)
    assert all(word in str(caught.value) for word in wanted)


@pytest.mark.inductor
@pytest.mark.parametrize("keywords", [{"mode": "max-autotune-no-cudagraphs"}, {"options": {"epilogue_fusion": False, "trace.enabled": False}}])
@pytest.mark.slow
def test_modes_and_options_compile(keywords):
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    assert same(framegraft.compile(program, backend="inductor", **keywords)(a, b), program(a, b), exact=False)


@pytest.mark.parametrize("name", ["onnxrt", "openvino"])
def test_third_party_backends(name):
    if name not in list_backends():
        pytest.skip(f"no installed distribution offers the backend {name!r} (entry point group {registry.ENTRY_POINT_GROUP})")
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    assert same(framegraft.compile(program, backend=name)(a, b), program(a, b), exact=False)


class Sevenfold(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 7


def without_grad(x):
    with torch.no_grad():
        return x * 2


def in_bfloat16(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x[None] @ x[:, None]
    return y + 1


UNSEEN = {
    "no_grad": without_grad,
    "autocast": in_bfloat16,
    "autograd function": Sevenfold.apply,
    "vmap": torch.vmap(torch.sin),
    "grad": torch.func.grad(lambda x: x.sin().sum()),
    "cond": lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)),
}


@pytest.mark.parametrize("f", UNSEEN.values(), ids=UNSEEN)
def test_ts_keeps_what_tracing_does_not_see(f):
    def of(x):
        return f(x)

    compiled = framegraft.compile(of, backend="ts")
    for x in (torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([-1.0, -2.0], requires_grad=True)):
        got, expected = compiled(x), of(x)
        torch.testing.assert_close(got, expected)
        assert got.requires_grad == expected.requires_grad
        if got.requires_grad:
            torch.testing.assert_close(*(torch.autograd.grad(y.sum(), x) for y in (got, expected)))
