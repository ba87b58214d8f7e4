"""The public interface."""

import copy
import inspect
import pickle
import threading
import types

import pytest
import torch
import torch.nn as nn

import framegraft


class Net(nn.Module):
    """A module that a pickle can name."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)
        self.width = 2

    def forward(self, x, scale=1.0):
        return self.lin(x).relu() * scale

    def helper(self, x):
        return x + self.width


class Plain:
    k = 3

    def go(self, x, by=1):
        return x * self.k + by

    @staticmethod
    def still(x):
        return x + 2

    @classmethod
    def make(cls, x):
        return x * cls.k


@pytest.fixture
def counter():
    return framegraft.testing.CompileCounter()


@pytest.fixture
def x():
    return torch.linspace(-1, 1, 6).reshape(2, 3)


def test_decorator_forms(counter, x):
    @framegraft.compile(backend=counter)
    def one(v):
        """Doc."""
        return v + 1

    @framegraft.optimize(counter)
    def two(v, *, k=2):
        return v * k

    assert torch.equal(one(x), x + 1) and torch.equal(two(x, k=3), x * 3)
    assert counter.frame_count == 2
    assert one.__name__ == "one" and one.__doc__ == "Doc." and one.__module__ == __name__
    assert str(inspect.signature(two)) == "(v, *, k=2)"
    assert callable(one.__wrapped__) and framegraft.innermost_fn(one) is one.__wrapped__


def test_default_backend_is_inductor():
    assert inspect.signature(framegraft.compile).parameters["backend"].default == "inductor"
    for name in ("eager", "aot_eager", "inductor", "ts"):
        assert name in framegraft.list_backends()


def test_methods(counter, x):
    p = Plain()
    bound = framegraft.compile(p.go, backend=counter)
    assert torch.equal(bound(x, by=2), p.go(x, by=2))
    assert torch.equal(framegraft.compile(Plain.still, backend=counter)(x), x + 2)
    assert torch.equal(framegraft.compile(Plain.make, backend=counter)(x), x * 3)
    p.k = 7
    assert torch.equal(bound(x), p.go(x))


def test_decorated_method(counter, x):
    class A:
        def __init__(self, k):
            self.k = k

        @framegraft.compile(backend=counter)
        def go(self, v):
            return v * self.k

    a, b = A(2), A(3)
    assert torch.equal(a.go(x), x * 2) and torch.equal(b.go(x), x * 3) and torch.equal(A.go(a, x), x * 2)


def test_module(counter, x):
    m = Net()
    c = framegraft.compile(m, backend=counter)
    assert isinstance(c, nn.Module)
    assert torch.equal(c(x), m(x)) and torch.equal(c(x, scale=2), m(x, scale=2))
    assert set(c.state_dict()) == set(m.state_dict())
    assert c.width == 2 and c.lin is m.lin and torch.equal(c.helper(x), m.helper(x))
    assert [id(p) for p in c.parameters()] == [id(p) for p in m.parameters()]
    c.eval()
    assert not m.training and not c.training
    c.train()
    assert m.lin.training
    c.width = 9
    assert m.width == 9
    assert c.to(torch.float64) is not None and m.lin.weight.dtype == torch.float64
    assert torch.equal(c(x.double()), m(x.double()))
    m.load_state_dict(c.state_dict())
    with pytest.raises(AttributeError):
        c.nothing


def test_module_pickles_and_copies(counter, x):
    m = Net()
    c = framegraft.compile(m, backend="eager")
    expected = c(x)
    again = pickle.loads(pickle.dumps(c))
    assert torch.equal(again(x), expected)
    clone = copy.deepcopy(c)
    with torch.no_grad():
        clone.lin.weight.zero_()
    assert torch.equal(c(x), expected) and not torch.equal(clone(x), expected)


def test_forward_of_a_class(counter, x):
    class M(Net):
        forward = framegraft.compile(Net.forward, backend=counter)

    m = M()
    assert torch.equal(m(x), Net.forward(m, x))
    assert counter.frame_count == 1


def test_classes_are_refused():
    for bad in (3, "text", None.__class__):
        with pytest.raises((TypeError, framegraft.exc.FramegraftError)):
            framegraft.compile(bad, backend="eager")(torch.ones(1)).undefined


def test_disable_argument(counter, x):
    def f(v):
        return v + 1

    c = framegraft.compile(f, backend=counter, disable=True)
    assert torch.equal(c(x), x + 1) and counter.frame_count == 0


def test_optimize_context_captures_callees(counter, x):
    def inner(v):
        return v * 2

    def outer(v):
        return inner(v) + 1

    with framegraft.optimize(counter):
        assert torch.equal(outer(x), x * 2 + 1)
        assert torch.equal(inner(x), x * 2)
    seen = counter.frame_count
    assert seen >= 2
    outer(x)
    inner(torch.ones(7))
    assert counter.frame_count == seen


def test_context_ends_on_exception(counter, x):
    def f(v):
        return v + 1

    with pytest.raises(ZeroDivisionError), framegraft.optimize(counter):
        1 // 0
    f(x)
    assert counter.frame_count == 0


def test_run_compiles_nothing_new(counter, x):
    def f(v):
        return v + 1

    c = framegraft.compile(f, backend=counter)
    c(x)
    with framegraft.run():
        assert torch.equal(c(x), x + 1)
        assert torch.equal(c(torch.ones(9)), torch.ones(9) + 1)
    assert counter.frame_count == 1
    ran = framegraft.run(f)
    assert torch.equal(ran(x), x + 1) and torch.equal(ran(torch.ones(8)), torch.ones(8) + 1)
    assert counter.frame_count == 1


def test_disable(counter, x):
    @framegraft.disable
    def opaque(v):
        return v * 2 if framegraft.is_compiling() is False else v * 1000

    def f(v):
        return opaque(v + 1) + 1

    c = framegraft.compile(f, backend=counter)
    assert torch.equal(c(x), (x + 1) * 2 + 1)
    assert counter.frame_count == 2
    with framegraft.disable():
        assert torch.equal(c(torch.ones(5)), (torch.ones(5) + 1) * 2 + 1)
    assert counter.frame_count == 2
    strict = framegraft.compile(f, backend=counter, fullgraph=True)
    with pytest.raises(framegraft.exc.Unsupported):
        strict(x)


@pytest.mark.parametrize("mark", [lambda f: framegraft.disable(f, reason="it logs"), framegraft.disable(reason="it logs"),
                                  framegraft.disable(recursive=False, reason="it logs")], ids=["function", "decorator", "alone"])
def test_reasons_of_breaks_that_the_program_asks_for(mark, x):
    opaque = mark(lambda v: v * 2)

    def f(v):
        v = opaque(v.sin())
        framegraft.graph_break("by request")
        return v.cos()

    torch.testing.assert_close(framegraft.compile(f, backend="eager")(x), (x.sin() * 2).cos())
    told = [str(reason) for reason in framegraft.break_reasons()]
    assert any("it logs" in text for text in told) and any("by request" in text for text in told), told
    with pytest.raises(TypeError, match="reason must be a text"):
        framegraft.disable(f, reason=1)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, v):
        return self.inner(v.sigmoid())


class Around(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.last = torch.nn.Linear(4, 4)

    def forward(self, v):
        return self.last(self.layer(v.sin()))


def test_disable_of_a_module(counter):
    net, v = Around(Layer()), torch.ones(2, 4)
    expected, names = net(v), list(net.state_dict())
    net.layer.register_forward_pre_hook(lambda module, args: (args[0] * 1,))
    net.layer = framegraft.disable(net.layer)
    assert isinstance(net.layer, Layer) and list(net.state_dict()) == names
    assert torch.equal(framegraft.compile(net, backend=counter)(v), expected)
    assert counter.frame_count == 2 and counter.op_count == 2  # sin and linear
    again = copy.deepcopy(framegraft.disable(framegraft.compile(net.layer, backend=counter)))
    assert torch.equal(framegraft.compile(again, backend=counter)(v), net.layer(v)) and again.eval() is again
    assert torch.equal(framegraft.compile(again.forward, backend=counter)(v), net.layer(v))
    assert counter.frame_count == 2
    with framegraft.optimize(counter):
        again(v)
    assert counter.frame_count == 2


def test_disable_of_a_class(counter, x):
    Kept = framegraft.disable(type("Kept", (Layer,), {}))

    @framegraft.disable()
    class Adding:
        def __call__(self, v):
            return v.sin() + 1

    net, v, adding = Around(Kept()), torch.ones(2, 4), Adding()
    assert torch.equal(framegraft.compile(net, backend=counter)(v), net(v)) and type(net.layer) is Kept
    assert counter.frame_count == 2 and counter.op_count == 2
    f = framegraft.compile(lambda v: adding(v + 1) * 2, backend=counter)
    assert torch.equal(f(x), adding(x + 1) * 2) and isinstance(adding, Adding)
    assert counter.frame_count == 4


def test_disable_of_the_function_alone(counter, x):
    def inner(v):
        return v.sin() * 2 if framegraft.is_compiling() else v * 1000

    @framegraft.disable(recursive=False)
    def opaque(v):
        assert not framegraft.is_compiling()
        return inner(v) + 1

    class Holder:
        @framegraft.disable(recursive=False)
        def method(self, v):
            return opaque(v) * 2

    def f(v):
        return Holder().method(v + 1) + 1

    expected = ((x + 1).sin() * 2 + 1) * 2 + 1
    c = framegraft.compile(f, backend=counter)
    assert torch.equal(c(x), expected) and torch.equal(c(x), expected)
    assert counter.frame_count == 3  # before, inner and behind
    with pytest.raises(framegraft.exc.Unsupported):
        framegraft.compile(f, backend=counter, fullgraph=True)(x)
    assert framegraft.disable(opaque, recursive=False) is opaque
    with pytest.raises(TypeError, match="Python function"):
        framegraft.disable(torch.nn.ReLU(), recursive=False)


def test_is_compiling(counter, x):
    def f(v):
        return v + (1 if framegraft.is_compiling() else 2) + (10 if torch.compiler.is_compiling() else 20)

    assert not framegraft.is_compiling()
    assert torch.equal(framegraft.compile(f, backend=counter)(x), x + 1 + 10)
    assert torch.equal(f(x), x + 22)
    assert not torch.compiler.is_compiling()


def test_graph_break_call(counter, x):
    def f(v):
        v = v + 1
        framegraft.graph_break()
        return v * 2

    assert torch.equal(framegraft.compile(f, backend=counter)(x), (x + 1) * 2)
    assert counter.frame_count == 2
    assert len(framegraft.break_reasons()) == 1
    with pytest.raises(framegraft.exc.Unsupported) as caught:
        framegraft.compile(f, backend=counter, fullgraph=True)(x)
    assert "graph_break" in str(caught.value)
    assert torch.equal(f(x), (x + 1) * 2)


def test_allow_and_disallow_in_graph(x):
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    @framegraft.allow_in_graph
    def opaque(v):
        return v * 2 + 1

    def f(v):
        return opaque(v) - 1

    assert torch.equal(framegraft.compile(f, backend=backend)(x), x * 2)
    assert len(graphs) == 1 and any(n.target is opaque for n in graphs[0].graph.nodes)


def test_assume_constant_result(counter, x):
    calls = []

    @framegraft.assume_constant_result
    def width():
        calls.append(1)
        return 3

    def f(v):
        return v * width()

    c = framegraft.compile(f, backend=counter)
    assert torch.equal(c(x), x * 3) and torch.equal(c(x), x * 3)
    assert len(calls) == 1 and counter.frame_count == 1


def test_fullgraph_without_break(counter, x):
    def f(v):
        return torch.relu(v) if v.dim() == 2 else v

    assert torch.equal(framegraft.compile(f, backend=counter, fullgraph=True)(x), torch.relu(x))


def test_unsupported_says_where(x):
    def f(v):
        w = v + 1
        print("no")
        return w

    with pytest.raises(framegraft.exc.Unsupported) as caught:
        framegraft.compile(f, backend="eager", fullgraph=True)(x)
    error = caught.value
    assert isinstance(error, framegraft.exc.FramegraftError)
    assert error.reason_id and error.why and error.hint
    assert (__file__, f.__code__.co_firstlineno + 2) in [(file, line) for file, line, _ in error.user_stack]


def test_user_exception_is_not_wrapped_in_fullgraph(x):
    def f(v):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        framegraft.compile(f, backend="eager", fullgraph=True)(x)


def test_unknown_backend():
    with pytest.raises(framegraft.exc.InvalidBackend, match="no_such"):
        framegraft.compile(lambda v: v, backend="no_such")(torch.ones(1))
    with pytest.raises((framegraft.exc.InvalidBackend, TypeError)):
        framegraft.compile(lambda v: v, backend=3)(torch.ones(1))


def test_registered_backend(x):
    seen = []

    @framegraft.register_backend
    def mine_for_test(gm, inputs):
        seen.append(gm)
        return gm.forward

    assert "mine_for_test" in framegraft.list_backends()
    assert torch.equal(framegraft.compile(lambda v: v + 1, backend="mine_for_test")(x), x + 1)
    assert len(seen) == 1


def test_failing_backend(x):
    def broken_backend(gm, inputs):
        raise ValueError("inside the compiler")

    def f(v):
        return v + 1

    with pytest.raises(framegraft.exc.BackendCompilerFailed, match="broken_backend") as caught:
        framegraft.compile(f, backend=broken_backend)(x)
    assert isinstance(caught.value.__cause__, ValueError)
    framegraft.reset()
    with framegraft.config.patch(suppress_errors=True):
        assert torch.equal(framegraft.compile(f, backend=broken_backend)(x), x + 1)


def test_backend_that_returns_nothing(x):
    with pytest.raises(framegraft.exc.BackendCompilerFailed):
        framegraft.compile(lambda v: v + 1, backend=lambda gm, inputs: None)(x)


def test_backend_gets_a_graph_module_and_tensors(x):
    got = []

    def backend(gm, inputs):
        gm.graph.lint()
        got.append((gm, inputs))
        return gm.forward

    framegraft.compile(lambda v, w: v @ w.t(), backend=backend)(x, x)
    ((gm, inputs),) = got
    assert isinstance(gm, torch.fx.GraphModule)
    assert all(isinstance(t, torch.Tensor) for t in inputs)
    assert "eager" not in framegraft.config.__dict__


def test_what_the_backend_returns_is_what_runs(x):
    calls = []

    def backend(gm, inputs):
        def compiled(*args):
            calls.append(len(args))
            return gm.forward(*args)

        return compiled

    c = framegraft.compile(lambda v: v * 2, backend=backend)
    c(x)
    c(x)
    assert calls == [1, 1]


@pytest.mark.parametrize(
    "change", [{"no_such_setting": 1}, {"cache_size_limit": "many"}, {"suppress_errors": 1}, {"cache_size_limit": 0}]
)
def test_config_errors(change):
    with pytest.raises(framegraft.exc.ConfigError):
        framegraft.config.patch(**change)
    name, value = next(iter(change.items()))
    with pytest.raises((framegraft.exc.ConfigError, AttributeError)):
        setattr(framegraft.config, name, value)


def test_config_patch_restores():
    before = framegraft.config.cache_size_limit
    with framegraft.config.patch(cache_size_limit=5):
        assert framegraft.config.cache_size_limit == 5
    assert framegraft.config.cache_size_limit == before == 64

    @framegraft.config.patch(cache_size_limit=7)
    def inside():
        return framegraft.config.cache_size_limit

    assert inside() == 7 and framegraft.config.cache_size_limit == 64


def test_compiled_calls_compiled(counter, x):
    @framegraft.compile(backend=counter)
    def inner(v):
        return v + 1

    @framegraft.compile(backend=counter)
    def outer(v):
        return inner(v) * 2

    assert torch.equal(outer(x), (x + 1) * 2)
    assert torch.equal(inner(x), x + 1)


def test_recursive_compiled(counter, x):
    @framegraft.compile(backend=counter)
    def f(v, n):
        return v if n == 0 else f(v + n, n - 1)

    assert torch.equal(f(x, 4), x + 10)


def test_reset_forgets(counter, x):
    c = framegraft.compile(lambda v: v + 1, backend=counter)
    c(x)
    framegraft.reset()
    assert framegraft._debug_get_cache_entry_list(framegraft.innermost_fn(c)) == []
    c(x)
    assert counter.frame_count == 2


def test_no_tensors_no_graph(counter):
    c = framegraft.compile(lambda a, b: a + b, backend=counter)
    assert c(1, 2) == 3 and c("a", "b") == "ab" and counter.frame_count == 0


def test_builtin_and_torch_functions(counter, x):
    assert torch.equal(framegraft.compile(torch.sin, backend=counter)(x), torch.sin(x))
    assert framegraft.compile(len, backend=counter)([1, 2]) == 2


def test_bytecode_hook(x):
    seen = []

    def hook(old, new):
        seen.append((old, new))
        return None

    def f(v):
        return v + 1

    handle = framegraft.register_bytecode_hook(hook)
    try:
        assert torch.equal(framegraft.compile(f, backend="eager")(x), x + 1)
    finally:
        handle.remove()
    assert seen and seen[0][0] is f.__code__ and seen[0][1].co_code != f.__code__.co_code


def test_threads(counter, x):
    def f(v, n):
        return (v * n).sum() + n

    c = framegraft.compile(f, backend=counter, dynamic=False)
    wrong = []

    def work(k):
        for i in range(20):
            n = (i + k) % 3
            if not torch.equal(c(x, n), f(x, n)):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and counter.frame_count == 3


def test_settrace_and_profile_see_the_same(x):
    import sys

    def f(v):
        return v + 1

    c = framegraft.compile(f, backend="eager")
    events = []
    sys.setprofile(lambda frame, event, arg: events.append(event))
    try:
        a = c(x)
        b = c(x)
    finally:
        sys.setprofile(None)
    assert torch.equal(a, x + 1) and torch.equal(b, x + 1)
    sys.settrace(lambda *args: None)
    try:
        assert torch.equal(c(x), x + 1)
    finally:
        sys.settrace(None)


def test_beside_stock_compile(x):
    def f(v):
        return v * 2 + 1

    ours = framegraft.compile(f, backend="eager")
    stock = torch.compile(f, backend="eager")
    for _ in range(2):
        assert torch.equal(ours(x), f(x)) and torch.equal(stock(x), f(x))

    def g(v):
        return stock(v) + 1

    assert torch.equal(framegraft.compile(g, backend="eager")(x), f(x) + 1)


def test_explain_and_public_names():
    for name in ("optimize", "run", "disable", "compile", "reset", "is_compiling", "graph_break", "allow_in_graph"):
        assert name in framegraft.__all__
    for name in ("disallow_in_graph", "assume_constant_result", "list_backends", "register_backend", "set_logs"):
        assert callable(getattr(framegraft, name))


def test_entries_of_a_compiled_module_are_found():
    models = [nn.Linear(2, 2), nn.Linear(2, 2)]
    compiled = [framegraft.compile(m, backend="eager") for m in models]
    compiled[0](torch.ones(1, 2))
    assert len(framegraft._debug_get_cache_entry_list(compiled[0])) == 1
    assert not framegraft._debug_get_cache_entry_list(compiled[1])


def test_reset_forgets_functions_whose_code_is_equal():
    source = "def f(x):\n    return x + 1\n"
    functions = []
    for _ in range(2):
        space = {}
        exec(compile(source, "<equal>", "exec"), space)
        functions.append(space["f"])
    assert functions[0].__code__ == functions[1].__code__ and functions[0].__code__ is not functions[1].__code__
    for fn in functions:
        framegraft.compile(fn, backend="eager")(torch.ones(2))
    assert [len(framegraft._debug_get_cache_entry_list(fn)) for fn in functions] == [1, 1]
    framegraft.reset()
    assert [len(framegraft._debug_get_cache_entry_list(fn)) for fn in functions] == [0, 0]


def test_limits_are_each_function_s_own():
    def make():
        def f(x, n):
            return x + n if n != 2 else x

        return types.FunctionType(f.__code__.replace(), f.__globals__, "f")

    with framegraft.config.patch(accumulated_cache_size_limit=2, specialize_int=True):
        for fn in (make(), make()):
            compiled = framegraft.compile(fn, backend="eager", fullgraph=True)
            for n in (1, 3):
                compiled(torch.ones(2), n)
            with pytest.raises(framegraft.exc.RecompileLimitExceeded):
                compiled(torch.ones(2), 4)


def test_forward_of_a_compiled_module_is_wrapped():
    class M(torch.nn.Module):
        def forward(self, x, scale=1):
            return x * scale + 1

    def run(capture):
        module = M()
        model = capture(module)
        x, seen = torch.ones(2), []

        def look():
            seen.append((model(x), model.forward(x), module(x)))

        look()
        model.forward = model.forward
        look()
        inner = model.forward
        model.forward = lambda x: inner(x, scale=3) * 10
        look()
        outer = model.forward
        module.forward = lambda x: outer(x) - 5
        look()
        del module.forward
        look()
        return seen, str(inspect.signature(model.forward))

    expected, got = run(lambda m: m), run(lambda m: framegraft.compile(m, backend="eager"))
    torch.testing.assert_close(got[0], expected[0], rtol=0, atol=0)
    assert got[1] == expected[1]
    assert not framegraft.break_reasons()
