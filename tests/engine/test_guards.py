"""What changes must recompile, what must not, and what the guards look like."""

import logging
import warnings

import pytest
import torch
import torch.nn as nn

import framegraft

FACTOR = 2


@pytest.fixture
def counter():
    framegraft.reset()
    yield framegraft.testing.CompileCounter()
    framegraft.reset()


def entries(compiled):
    return framegraft._debug_get_cache_entry_list(framegraft.innermost_fn(compiled))


def f(x):
    return x * 2 + 1


def double(x):
    return x * 2


def x23():
    return torch.arange(6.0).reshape(2, 3)


OTHERS = {
    "dtype": lambda: x23().double(),
    "shape": lambda: torch.ones(3, 3),
    "rank": lambda: torch.ones(2, 3, 1),
    "stride": lambda: torch.arange(6.0).reshape(3, 2).t(),
    "device": lambda: torch.ones(2, 3, device="meta"),
    "requires_grad": lambda: x23().requires_grad_(),
    "subclass": lambda: nn.Parameter(x23(), requires_grad=False),
    "not a tensor": lambda: 5,
    "sparse": lambda: x23().to_sparse(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_changed_argument_recompiles_and_old_value_hits(counter, name):
    f = double if name == "sparse" else globals()["f"]  # eager cannot add a number to a sparse tensor
    compiled = framegraft.compile(f, backend=counter)
    make = OTHERS[name]
    first = compiled(x23())
    assert (counter.frame_count, len(entries(compiled))) == (1, 1)
    old = entries(compiled)[0]
    changed = compiled(make())
    expected = f(make())
    assert type(changed) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert (changed.dtype, changed.shape, changed.device) == (expected.dtype, expected.shape, expected.device)
        assert changed.layout != torch.strided or changed.stride() == expected.stride()
        assert changed.requires_grad == expected.requires_grad
    assert len(entries(compiled)) == 2
    graphs = counter.frame_count
    assert torch.equal(compiled(x23()), first)
    compiled(make())
    assert counter.frame_count == graphs and len(entries(compiled)) == 2
    assert any(e is old or e.code is old.code for e in entries(compiled))


def test_values_do_not_recompile(counter):
    compiled = framegraft.compile(f, backend=counter)
    for i in range(5):
        x = torch.full((2, 3), float(i))
        assert torch.equal(compiled(x), f(x))
    assert counter.frame_count == 1


def check_switch(compiled, counter, eager, switch, back, args):
    """One entry, then another after switch, and no third after back."""
    assert framegraft.testing.same(compiled(*args), eager(*args))
    before = counter.frame_count
    switch()
    assert framegraft.testing.same(compiled(*args), eager(*args))
    changed = counter.frame_count
    assert changed > before
    back()
    assert framegraft.testing.same(compiled(*args), eager(*args))
    assert counter.frame_count == changed
    switch()
    assert framegraft.testing.same(compiled(*args), eager(*args))
    assert counter.frame_count == changed
    back()


def test_grad_mode(counter):
    w = torch.ones(3, requires_grad=True)

    def g(x):
        return x * w

    compiled = framegraft.compile(g, backend=counter)
    check_switch(
        compiled,
        counter,
        g,
        lambda: torch.set_grad_enabled(False),
        lambda: torch.set_grad_enabled(True),
        (torch.ones(3),),
    )


def test_default_dtype(counter):
    def g(x):
        return x + torch.ones(3)

    compiled = framegraft.compile(g, backend=counter)
    check_switch(
        compiled,
        counter,
        g,
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.set_default_dtype(torch.float32),
        (torch.ones(3),),
    )


def test_global(counter):
    def g(x):
        return x * FACTOR

    def set_factor(v):
        globals()["FACTOR"] = v

    compiled = framegraft.compile(g, backend=counter)
    check_switch(compiled, counter, g, lambda: set_factor(5), lambda: set_factor(2), (torch.ones(3),))


def test_global_deleted(counter):
    def g(x):
        return x * TEMPORARY  # noqa: F821

    globals()["TEMPORARY"] = 3
    compiled = framegraft.compile(g, backend=counter)
    compiled(torch.ones(3))
    del globals()["TEMPORARY"]
    with pytest.raises(NameError):
        compiled(torch.ones(3))


def test_attribute(counter):
    class Config:
        pass

    config = Config()
    config.k = 2

    def g(x):
        return x * config.k

    compiled = framegraft.compile(g, backend=counter)
    check_switch(
        compiled, counter, g, lambda: setattr(config, "k", 3), lambda: setattr(config, "k", 2), (torch.ones(3),)
    )


def test_attribute_of_the_class_hidden_by_one_of_the_instance(counter):
    class Config:
        k = 2

    config = Config()

    def g(x):
        return x * config.k

    compiled = framegraft.compile(g, backend=counter)
    check_switch(compiled, counter, g, lambda: setattr(config, "k", 3), lambda: delattr(config, "k"), (torch.ones(3),))
    check_switch(compiled, counter, g, lambda: setattr(Config, "k", 3), lambda: setattr(Config, "k", 2), (torch.ones(3),))


def test_closure_cell(counter):
    k = 2

    def g(x):
        return x * k

    def put(v):
        nonlocal k
        k = v

    compiled = framegraft.compile(g, backend=counter)
    check_switch(compiled, counter, g, lambda: put(7), lambda: put(2), (torch.ones(3),))


def test_list_and_dict_arguments(counter):
    def g(x, items, table):
        return x * len(items) + table["k"]

    compiled = framegraft.compile(g, backend=counter)
    for items, table in (([1], {"k": 1}), ([1, 2], {"k": 1}), ([1, 2], {"k": 5, "j": 0}), ([3], {"k": 1})):
        assert torch.equal(compiled(torch.ones(3), items, table), g(torch.ones(3), items, table))


def test_training_flag(counter):
    m = nn.Sequential(nn.Linear(3, 3), nn.Dropout(1.0))
    compiled = framegraft.compile(m, backend=counter)
    check_switch(compiled, counter, m, m.eval, m.train, (torch.ones(2, 3),))


def test_module_parameter(counter):
    m = nn.Linear(3, 3)
    compiled = framegraft.compile(m, backend=counter)
    x = torch.ones(2, 3)
    assert torch.equal(compiled(x), m(x))
    with torch.no_grad():
        m.weight.mul_(2)
    assert torch.equal(compiled(x), m(x))
    assert counter.frame_count == 1
    m.weight.data = torch.ones(3, 3)
    assert torch.equal(compiled(x), m(x))
    m.weight = nn.Parameter(torch.zeros(3, 3))
    assert torch.equal(compiled(x), m(x))
    m.weight = nn.Parameter(torch.ones(5, 3))
    m.bias = None
    assert torch.equal(compiled(x), m(x))
    m.weight.requires_grad_(False)
    assert compiled(x).requires_grad == m(x).requires_grad is False
    m.double()
    assert compiled(x.double()).dtype == torch.float64


def test_hook(counter):
    m = nn.Sequential(nn.Linear(3, 3))
    compiled = framegraft.compile(m, backend=counter)
    x = torch.ones(2, 3)
    assert torch.equal(compiled(x), m(x))
    handle = m[0].register_forward_hook(lambda mod, args, out: out + 1)
    assert torch.equal(compiled(x), m(x))
    own = m.register_forward_pre_hook(lambda mod, args: (args[0] * 2,))
    assert torch.equal(compiled(x), m(x))
    seen = counter.frame_count
    handle.remove()
    own.remove()
    assert torch.equal(compiled(x), m(x))
    assert counter.frame_count == seen


def test_global_module_hook(counter):
    m = nn.Linear(3, 3)
    compiled = framegraft.compile(m, backend=counter)
    x = torch.ones(2, 3)
    compiled(x)
    handle = nn.modules.module.register_module_forward_hook(lambda mod, args, out: out * 3)
    try:
        assert torch.equal(compiled(x), m(x))
    finally:
        handle.remove()
    assert torch.equal(compiled(x), m(x))


def test_patched_method_and_function(counter, monkeypatch):
    class A:
        def go(self, x):
            return x + 1

    a = A()

    def g(x):
        return a.go(x)

    compiled = framegraft.compile(g, backend=counter)
    x = torch.ones(3)
    compiled(x)
    monkeypatch.setattr(A, "go", lambda self, v: v * 10)
    assert torch.equal(compiled(x), x * 10)
    a.go = lambda v: v - 1
    assert torch.equal(compiled(x), x - 1)


def test_argument_aliasing(counter):
    def g(x, y):
        x.add_(1)
        return x + y

    compiled = framegraft.compile(g, backend=counter)
    for same in (False, True, False):
        a = torch.ones(3)
        b = a if same else torch.ones(3)
        c = torch.ones(3)
        d = c if same else torch.ones(3)
        assert torch.equal(compiled(a, b), g(c, d))


def test_recompile_log_says_which_guard(counter, caplog):
    framegraft.set_logs("recompiles")
    try:
        with caplog.at_level(logging.DEBUG, logger="framegraft"):
            logging.getLogger("framegraft").addHandler(caplog.handler)
            compiled = framegraft.compile(f, backend=counter)
            compiled(x23())
            compiled(x23().double())
    finally:
        logging.getLogger("framegraft").removeHandler(caplog.handler)
        framegraft.set_logs("")
    assert "L['x']" in caplog.text or "'x'" in caplog.text
    assert "dtype" in caplog.text.lower() or "float" in caplog.text.lower() or "double" in caplog.text.lower()


def test_cache_size_limit_falls_back_with_one_warning(counter, caplog):
    def g(x, n):
        return x * n

    with framegraft.config.patch(cache_size_limit=3), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        logger = logging.getLogger("framegraft")
        logger.addHandler(caplog.handler)
        try:
            compiled = framegraft.compile(g, backend=counter, dynamic=False)
            for n in range(8):
                assert torch.equal(compiled(torch.ones(2), n), torch.ones(2) * n)
        finally:
            logger.removeHandler(caplog.handler)
        assert counter.frame_count == 3
        assert len(entries(compiled)) == 3
        told = [str(w.message) for w in caught if "cache_size_limit" in str(w.message)]
        logged = {id(r): r for r in caplog.records if "cache_size_limit" in r.getMessage()}
        assert len(told) + len(logged) == 1
        assert torch.equal(compiled(torch.ones(2), 1), torch.ones(2))
        assert counter.frame_count == 3


def test_error_on_recompile():
    with framegraft.config.patch(error_on_recompile=True):
        compiled = framegraft.compile(f, backend="eager")
        compiled(torch.ones(2))
        with pytest.raises(framegraft.exc.RecompileLimitExceeded):
            compiled(torch.ones(3))


def test_check_fn_and_code_parts():
    def g(a, b, n):
        return a * FACTOR + b * n

    compiled = framegraft.compile(g, backend="eager")
    a, b = torch.ones(2), torch.zeros(2)
    compiled(a, b, 3)
    (entry,) = entries(compiled)
    check = entry.check_fn
    assert check({"a": a, "b": b, "n": 3}) is True
    assert check({"a": a, "b": b, "n": 4}) is False
    assert check({"a": a.double(), "b": b, "n": 3}) is False
    assert check({"a": a, "b": "b", "n": 3}) is False
    parts = list(check.code_parts)
    assert parts and all(isinstance(p, str) for p in parts)
    for part in parts:
        compile(part, "<guard>", "eval")
    text = "\n".join(parts)
    assert "L['a']" in text and "L['n']" in text and "FACTOR" in text
    assert len(check.verbose_code_parts) >= len(parts)
    assert any("test_guards.py" in p for p in check.verbose_code_parts)


def test_unread_arguments_are_not_guarded(counter):
    def g(x, unread):
        return x + 1

    compiled = framegraft.compile(g, backend=counter)
    for other in (1, "s", None, torch.ones(1), [1]):
        compiled(torch.ones(2), other)
    assert counter.frame_count == 1


def test_passed_on_constant_is_not_guarded(counter):
    def g(x, step):
        return x + 1, step

    compiled = framegraft.compile(g, backend=counter)
    for step in range(4):
        assert compiled(torch.ones(2), step)[1] == step
    assert counter.frame_count == 1


def test_bool_int_and_float_are_told_apart(counter):
    def g(x, n):
        return x * n, n + 0, type(n).__name__

    compiled = framegraft.compile(g, backend=counter)
    for n in (1, True, 1.0, 0.0, -0.0, 1, True):
        assert framegraft.testing.same(compiled(torch.ones(2), n), g(torch.ones(2), n))


def test_most_recent_entry_first(counter):
    compiled = framegraft.compile(f, backend=counter, dynamic=False)
    compiled(torch.ones(2))
    compiled(torch.ones(3))
    compiled(torch.ones(2))
    first = entries(compiled)[0]
    assert first.check_fn({"x": torch.ones(2)}) and not first.check_fn({"x": torch.ones(3)})


def test_dead_module_frees_its_entry(counter):
    import gc
    import weakref

    m = nn.Linear(3, 3)
    compiled = framegraft.compile(lambda mod, x: mod(x), backend=counter)
    compiled(m, torch.ones(2, 3))
    alive = weakref.ref(m), weakref.ref(m.weight)
    del m
    gc.collect()
    assert [r() for r in alive] == [None, None]
    other = nn.Linear(3, 3)
    x = torch.ones(2, 3)
    assert torch.equal(compiled(other, x), other(x))


def test_appending_asks_nothing_of_a_list(counter):
    history = []

    def g(x, log):
        log.append(x.sum())
        history.extend([1, 2])
        log += ["a"]
        return x + 1

    compiled = framegraft.compile(g, backend=counter)
    mine, eager = [], []
    for i in range(5):
        x = torch.full((2,), float(i))
        assert torch.equal(compiled(x, mine), g(x, eager))
    assert framegraft.testing.same(mine, eager) and history == [1, 2] * 10
    assert counter.frame_count == 1
    same = compiled.__wrapped__ if hasattr(compiled, "__wrapped__") else g
    assert same is g


def test_appending_then_looking(counter):
    def g(x, log):
        log.append(x.sum())
        n = len(log)
        log.append(n)
        return x + n + log[0]

    compiled = framegraft.compile(g, backend=counter)
    mine, eager = [torch.ones(())], [torch.ones(())]
    for i in range(4):
        x = torch.full((2,), float(i))
        assert torch.equal(compiled(x, mine), g(x, eager))
        assert framegraft.testing.same(mine, eager)


def test_appending_to_a_list_twice_given(counter):
    def g(x, a, b):
        a.append(x + 1)
        b.append(x + 2)
        a.append(x + 3)
        return x * 2

    compiled = framegraft.compile(g, backend=counter)
    for shared in (False, True, False):
        runs = []
        for fn in (compiled, g):
            a = [0]
            b = a if shared else [0]
            runs.append((fn(torch.ones(2), a, b), a, b))
        assert framegraft.testing.same(*runs)


def test_frame_without_tensor_operations_is_left_to_eager_mode_after_some_entries(counter):
    def name_of(text):
        return text.upper() + "!"

    compiled = framegraft.compile(name_of, backend=counter)
    with framegraft.config.patch(graphless_cache_size_limit=3):
        assert [compiled(str(n) + "a") for n in range(6)] == [f"{n}A!" for n in range(6)]
    assert len(entries(compiled)) == 3 and counter.frame_count == 0


def test_frame_whose_graphs_come_behind_a_break_is_not(counter):
    def told(text, x):
        count = int(text)
        print(text, end="")
        return x + count

    compiled = framegraft.compile(told, backend=counter)
    with framegraft.config.patch(graphless_cache_size_limit=3):
        for n in range(6):
            assert torch.equal(compiled(str(n), torch.ones(2)), torch.ones(2) + n)
    assert len(entries(compiled)) == 6 and counter.frame_count >= 1


def test_calls_of_a_frame_left_to_eager_mode_are_captured(counter):
    def inner(x):
        return x * 2

    def outer(text, x):
        if len(text) > 3:
            print(text, end="")
            return inner(x)
        return text.upper()

    with framegraft.config.patch(graphless_cache_size_limit=2), framegraft.optimize(counter):
        for text in ("a", "b", "c", "d"):
            assert outer(text, None) == text.upper()
        assert torch.equal(outer("long", torch.ones(2)), torch.full((2,), 2.0))
    assert counter.frame_count == 1
