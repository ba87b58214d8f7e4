"""Which sizes and numbers become symbols, and how many captures a program costs."""

import copy
import functools
import math
import operator

import pytest
import torch

import framegraft
from framegraft.run import records


def entries(fn):
    return framegraft._debug_get_cache_entry_list(fn)


def parts(fn):
    return [part for entry in entries(fn) for part in entry.check_fn.code_parts]


def same(got, expected):
    if isinstance(expected, torch.Tensor):
        return torch.equal(got, expected) and got.stride() == expected.stride() and got.dtype == expected.dtype
    if isinstance(expected, (list, tuple)):
        return type(got) is type(expected) and len(got) == len(expected) and all(map(same, got, expected))
    return type(got) is type(expected) and got == expected


def run(fn, calls, **settings):
    """Each call captured and in eager mode, with the same results; the number of captures after each."""
    settings.setdefault("backend", "eager")
    compiled = framegraft.compile(fn, **settings)
    counts = []
    for args in calls:
        got, expected = compiled(*args), fn(*args)
        assert same(got, expected), f"{got}, not {expected}"
        counts.append(len(entries(fn)))
    assert not framegraft.break_reasons()
    return counts


def matrices(*shapes):
    return [(torch.randn(*shape),) for shape in shapes]


def linear_relu(x):
    return torch.nn.functional.linear(x, torch.ones(4, x.shape[1])).relu()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_second_size_costs_one_recompile_a_third_none(backend):
    compiled = framegraft.compile(linear_relu, backend=backend)
    for index, n in enumerate((3, 5, 9, 2, 70)):
        x = torch.randn(n, 8)
        torch.testing.assert_close(compiled(x), linear_relu(x))
        assert len(entries(linear_relu)) == min(index + 1, 2)


def test_only_what_changed_becomes_a_symbol():
    def f(x):
        return x.sum(0) + x.shape[0]

    assert run(f, matrices((2, 3), (4, 3), (5, 3), (5, 4), (6, 7))) == [1, 2, 2, 3, 3]
    assert "2 <= L['x'].size(0)" in entries(f)[1].check_fn.code_parts
    assert not any("size(1)" in p for p in entries(f)[1].check_fn.code_parts)


def test_static():
    assert run(linear_relu, matrices((2, 3), (4, 3), (5, 3), (2, 3)), dynamic=False) == [1, 2, 3, 3]


def test_symbolic_at_once():
    assert run(linear_relu, matrices((2, 3), (4, 3), (5, 7), (2, 9)), dynamic=True) == [1, 1, 1, 1]


def test_setting_for_all():
    def f(x):
        return x * 2

    with framegraft.config.patch(dynamic_shapes=True):
        assert run(f, matrices((2, 3), (4, 5))) == [1, 1]
    with framegraft.config.patch(automatic_dynamic_shapes=False):
        assert run(f, matrices((2, 3), (4, 5), (6, 7)), dynamic=None, backend="aot_eager")[-1] == 4


def test_zero_and_one_have_their_own_captures():
    def f(x):
        return x.sum(0) * x.shape[0]

    assert run(f, matrices((5, 2), (6, 2), (1, 2), (0, 2), (9, 2), (1, 2))) == [1, 2, 3, 4, 4, 4]


def test_sizes_that_are_equal_by_chance_are_not_taken_for_the_same():
    def f(x):
        return x @ x.t() + x.sum()

    assert run(f, matrices((2, 2), (3, 3), (4, 5), (6, 3))) == [1, 2, 2, 2]


def test_equality_that_the_program_asks_for():
    def f(x, y):
        return x + y

    pairs = [(torch.ones(n), torch.ones(n)) for n in (2, 3, 4)]
    assert run(f, [*pairs, (torch.ones(4), torch.ones(1))]) == [1, 2, 2, 3]
    assert any("L['x'].size(0) == L['y'].size(0)" in p or "L['y'].size(0) == L['x'].size(0)" in p for p in parts(f))


def test_strides():
    def f(x):
        return x * 2, x.stride()

    whole = torch.randn(8, 100)
    views = [(whole[:, :n],) for n in (3, 5, 7)]
    assert run(f, [*views, (torch.randn(8, 6),), (torch.randn(8, 9),)]) == [1, 2, 2, 3, 3]
    turned = [(torch.randn(n, 8).t(),) for n in (3, 5, 9)]
    framegraft.reset()
    assert run(f, turned) == [1, 2, 2]


def test_the_same_sizes_with_other_strides():
    def f(x):
        return x.view(-1) if x.is_contiguous() else x.stride()

    calls = [(torch.randn(n, n, 3),) for n in (2, 4)]
    assert run(f, [*calls, (torch.randn(4, 4, 3).transpose(0, 1),), (torch.randn(5, 3, 5).transpose(1, 2),)], dynamic=True)[:2] == [1, 1]
    assert any(p.startswith("L['x'].stride(0) == ") for p in parts(f))


def test_branch_guards_on_what_was_asked():
    def f(x):
        return x + 1 if x.shape[0] > 6 else x - 1

    assert run(f, matrices((3,), (4,), (5,), (9,), (7,), (2,), (6,))) == [1, 2, 2, 3, 3, 3, 3]
    assert "L['x'].size(0) > 6" in parts(f) and "L['x'].size(0) <= 6" in parts(f)
    told = [p for e in entries(f) for p in e.check_fn.verbose_code_parts if "size(0) > 6" in p]
    assert told and all(__file__ in p for p in told)


def test_arithmetic_on_sizes_guards_nothing():
    def f(x):
        a, b = x.shape
        n = (a * b + 7) // 3 % 5 - max(a, b) * min(a, 4) + abs(a - b)
        return x * n, x.new_zeros(b + 1, a), n, a * b == x.numel()

    calls = matrices((4, 6), (5, 7), (8, 3), (9, 11))
    assert run(f, calls, dynamic=True) == [1] * 4
    assert sorted(p for p in parts(f) if "size(" in p and "stride" not in p) == ["2 <= L['x'].size(0)", "2 <= L['x'].size(1)"]


def test_numbers():
    def f(x, n):
        return x * n, n + 1, (n * 3) // 2

    assert run(f, [(torch.ones(2), n) for n in (0, 1, 5, -3, 10**12)]) == [1, 2, 2, 2, 2]
    with pytest.raises((RuntimeError, OverflowError)):
        framegraft.compile(f, backend="eager")(torch.ones(2), 1 << 80)


def test_numbers_of_another_type():
    def f(x, n):
        return x * n

    run(f, [(torch.ones(2), n) for n in (2, 3, 2.5, 3.5, True, False, 7)])


def test_settings_that_keep_numbers_constant():
    def f(x, n):
        return x * n

    with framegraft.config.patch(specialize_int=True, specialize_float=True):
        assert run(f, [(torch.ones(2), n) for n in (2, 3, 4, 0.5, 1.5, 2.5)]) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("ask", [
    lambda n: f"{n} items", lambda n: [3, 4, 5, 6, 7, 8][n], lambda n: {n: 1}[n], hash, str, lambda n: [0] * n, lambda n: list(range(n)),
    lambda n: n.bit_length(), lambda n: "%d" % n, lambda n: {2: "two", 3: "three"}.get(n), lambda n: (1, 2, 3)[:n], lambda n: bin(n), lambda n: sorted([n, 3]),
    lambda n: bin(n), lambda n: hash(n),
])
def test_uses_that_need_the_value(ask):
    def f(x, n):
        return x + n, ask(n), x.shape[0], ask(x.shape[0])

    run(f, [(torch.randn(n), n) for n in (2, 3, 4, 2, 5)])
    assert len(entries(f)) == 4


@pytest.mark.parametrize("ask", [
    lambda n: n == 2 or n > 4, lambda n: not n, lambda n: n in (1, 2, 3), lambda n: isinstance(n, int), lambda n: type(n) is int,
    lambda n: divmod(n, 2), lambda n: n / 2, lambda n: n**2, lambda n: -n, lambda n: +n, lambda n: round(n), lambda n: float(n) * 0.5,
    lambda n: int(n / 2), lambda n: math.sqrt(n) + math.floor(n / 3), lambda n: sum([n, n, 1]), lambda n: (n, [n]), lambda n: n is None,
    lambda n: n == "2", lambda n: bool(n), lambda n: min([n, 3, n + 1]), lambda n: n if n else 0,
    lambda n: functools.reduce(lambda a, b: a * b, [n, n]), lambda n: 7 // n, lambda n: 7 % n, lambda n: 2.0**n, lambda n: max(n, 2.5),
    lambda n: math.prod([n, 2, n]), lambda n: operator.index(n) + n.__index__(), lambda n: n.__add__(1), lambda n: slice(n, None).start,
    lambda n: dict(a=n)["a"], lambda n: [n].count(n), lambda n: (n, 2).index(2), lambda n: {1: n}.get(1), lambda n: list(map(abs, [n, -n])),
    lambda n: (n & 6, n | 9, n ^ 5, 1 << n, n << 2, n >> 1), lambda n: (n**0.5, n**-1.5, round(n / 3), round(n * 0.5)),
    lambda n: (n | 1) > 0 and (n & 0) == 0 and (n ^ 64) > 20 and 1 << n > 0 and n >> 1 < 99 and round(n / 3) >= 0 and n**0.5 > 0.5,
    lambda n: torch.tensor(n) + torch.tensor(float(n)) + torch.tensor(n, dtype=torch.float64) + torch.as_tensor(n / 3),
    lambda n: any([n > 3, n < 2]), lambda n: n.real + n.numerator, lambda n: copy.deepcopy([n]), lambda n: n % 2 * n // 3 - n,
])
def test_uses_that_do_not(ask):
    def f(x, n):
        return x + n, ask(n), ask(x.shape[0])

    counts = run(f, [(torch.randn(n), n) for n in (6, 7, 8, 9, 12, 15)])
    assert counts == [1, 2, 2, 2, 2, 2]
    run(f, [(torch.randn(n), n) for n in (2, 3, 1)])


def test_division_by_zero():
    def f(x, n):
        try:
            return x, 7 // n
        except ZeroDivisionError as error:
            return x, str(error)

    run(f, [(torch.ones(2), n) for n in (2, 3, 0, 5, 0)])


def test_size_object():
    def f(x):
        s = x.shape
        return s, s + (1,), (2,) + tuple(s), s[1:], s.numel(), len(s), list(s), s == x.size(), s[0] in s, torch.Size([s[0], 2]), (
            s * 2, math.prod(s), sum(s), max(s), s[-1:] + s[:-1], s.index(s[1]), s.count(3), isinstance(s, tuple), type(s), s != (1, 2))

    assert run(f, matrices((2, 3), (4, 5), (6, 7))) == [1, 2, 2]


def test_numbers_inside_containers():
    def f(x, sizes, options):
        return x.view(sizes), x * options["scale"], sizes[0] + 1

    calls = [(torch.randn(n * 2), (n, 2), {"scale": n}) for n in (2, 3, 4, 5)]
    assert run(f, calls) == [1, 2, 2, 2]


class Stateful(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step, self.scale = 0, 1.0


class Count(Stateful):
    def forward(self, x):
        self.step += 1
        return x * self.step


class Decay(Stateful):
    def forward(self, x):
        self.scale *= 0.9
        return x * self.scale, self.scale


class Schedule(Stateful):
    def forward(self, x):
        self.step += 1
        rate = 0.1 * math.sqrt(1 - 0.9**self.step) / self.step
        return x * rate + math.cos(rate), rate


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("cls", [Count, Decay, Schedule])
def test_attributes_that_change(cls, backend):
    eager, module = cls(), cls()
    compiled = framegraft.compile(module, backend=backend)
    for _ in range(6):
        x = torch.randn(3)
        torch.testing.assert_close(compiled(x), eager(x))
        assert (module.step, module.scale) == (eager.step, eager.scale)
    assert framegraft.stats()["graphs"] <= 2


def test_counter_behind_a_break():
    def f(x, n):
        y = x * n
        print(end="")
        return y + n

    compiled = framegraft.compile(f, backend="eager")
    for n in range(8):
        assert torch.equal(compiled(torch.ones(n + 2), n), torch.ones(n + 2) * n + n)
    assert framegraft.stats()["graphs"] == 4


def test_float_arithmetic_is_done_in_the_programs_order():
    def f(x, s):
        return x * (s * 0.1 * 10.0), (s + 0.1) - 0.1 == s, s * 3 * (1 / 3)

    assert run(f, [(torch.ones(2, dtype=torch.float64), s) for s in (0.5, 0.7, 1.1, 2.3, 4.7)])[-1] <= 3


def test_training_with_changing_batches():
    def f(x, w):
        return (x @ w).relu().sum()

    for backend in ("eager", "aot_eager"):
        framegraft.reset()
        compiled = framegraft.compile(f, backend=backend)
        for n in (2, 3, 4, 5, 1):
            x, w = torch.randn(n, 3), torch.randn(3, 2, requires_grad=True)
            expected = torch.autograd.grad(f(x, w), w)
            torch.testing.assert_close(torch.autograd.grad(compiled(x, w), w), expected)
        assert len(entries(f)) == 3


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_changing_inputs_in_place(backend):
    def f(x, y):
        x.mul_(2)
        y.add_(x.sum())
        return x + 1

    compiled = framegraft.compile(f, backend=backend)
    for n in (2, 3, 4, 6):
        base = torch.randn(n + 3)
        a, b = base.clone(), base.clone()
        for shift in (n, 1, 0):  # apart or overlapping
            left, right = a[:n], a[shift : shift + 3]
            expected = f(b[:n], b[shift : shift + 3])
            assert torch.equal(compiled(left, right), expected) and torch.equal(a, b)


def test_views_of_one_base():
    def f(x, y):
        return x * 2 + y.sum()

    whole = torch.randn(20, 4)
    calls = [(whole[:n], whole[n:]) for n in (4, 5, 7, 9)] + [(whole, whole[:3])]
    assert run(f, calls)[3] == 2


def test_listeners_see_plain_numbers():
    class Inputs(framegraft.events.Listener):
        def __init__(self):
            self.seen = []

        def graph_compiled(self, event):
            self.seen.append([type(value) for value in event.inputs])

    def f(x, n):
        return (x * n).view(-1, x.shape[0])

    listener = Inputs()
    with framegraft.events.listening(listener):
        run(f, [(torch.ones(2, 3), 2), (torch.ones(4, 3), 5)])
    assert listener.seen == [[torch.Tensor], [int, int, torch.Tensor]]


def test_floats_that_change_in_inference_mode():
    def fn(x, k):
        with torch.inference_mode():
            made = torch.full((3,), k) * 2
        return made.tolist(), made.is_inference(), x + k

    compiled = framegraft.compile(fn, backend="eager")
    for k in (1.5, 2.5, 3.5, 4.5):
        got, expected = compiled(torch.ones(1), k), fn(torch.ones(1), k)
        assert got[:2] == expected[:2] and torch.equal(got[2], expected[2])


def test_a_float_that_a_compiler_takes_for_a_constant_leaves_the_others_alone():
    def f(x, scale, top):
        return (x * scale).clamp(max=top)

    counter = framegraft.testing.CompileCounterWithBackend("aot_eager")
    captured = framegraft.compile(f, backend=counter)
    x = torch.randn(4)
    for scale, top in ((0.5, 0.75), (1.5, 0.75), (2.5, 0.75), (2.5, 0.6), (3.5, 0.7)):
        torch.testing.assert_close(captured(x, scale, top), f(x, scale, top), rtol=0, atol=0)
    before = counter.frame_count
    for scale in (0.25, 1.25, 2.25, 3.25):  # a new limit costs one compilation, new factors none
        torch.testing.assert_close(captured(x, scale, 0.725), f(x, scale, 0.725), rtol=0, atol=0)
    assert counter.frame_count == before + 1


def test_a_compiler_fails_on_a_float_that_changes():
    """AOTAutograd has no derivative of a power whose base is a symbol."""
    def f(x, base):
        return base ** x

    captured = framegraft.compile(f, backend="aot_eager")
    for base in (0.5, 0.75, 1.5, 2.5):
        x = torch.randn(4, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        f(x, base).sum().backward()
        captured(y, base).sum().backward()
        torch.testing.assert_close(y.grad, x.grad, rtol=0, atol=0)


def test_a_batch_norm_in_eval_mode_writes_to_nothing():
    """What writes to its inputs cannot run again, and breaks the graph where the program may catch its errors."""
    norm = torch.nn.BatchNorm1d(4).eval()

    def f(x, index):
        try:
            return norm(x).index_select(0, index)
        except IndexError:
            return x

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    with torch.no_grad():
        for rows in (3, 5, 7):
            x = torch.randn(rows, 4)
            for index in (torch.tensor([0, 2]), torch.tensor([9])):
                assert torch.equal(compiled(x, index), f(x, index))


def test_new_tensors_of_sizes_that_change():
    def f(x):
        return x.new(x.shape).fill_(1) + x, x.new(x.shape[1:]).fill_(2), x.new(x.size() + (2,)).zero_()

    assert run(f, matrices((2, 3), (4, 3), (5, 7), (2, 9)), dynamic=True) == [1, 1, 1, 1]


def test_numbers_in_texts():
    def f(x, n):
        return x * n, "%d of %s" % (n, x.dtype), "%(n)d" % {"n": n}, "%d" % n, f"{n:3d}"

    run(f, [(torch.ones(3), n) for n in (3, 4, 5)])
