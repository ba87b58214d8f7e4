"""Corners of torch in programs: custom operators, pytrees, layouts and quantised tensors, generators, storage, compiler calls."""

import pytest
import torch
import torch.utils._pytree as pytree

import framegraft

from .differential import differential


def two():
    return torch.arange(6.0).reshape(2, 3), torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])


@torch.library.custom_op("framegraft_tests::twice", mutates_args=())
def twice_operator(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice_operator.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("framegraft_tests::increase", mutates_args={"x"})
def increase_operator(x: torch.Tensor) -> None:
    x.add_(1)


class Operators:
    twice, increase = twice_operator, increase_operator


@differential(two, graphs=1)
def test_custom_operators(x, y):
    Operators.increase(x)
    return Operators.twice(x), torch.ops.framegraft_tests.twice(y), torch.ops.aten.add.Tensor(x, y)


@differential(two, graphs=1)
def test_pytrees(x, y):
    tree = {"a": x, "b": [y, 1, (x, None)]}
    leaves, spec = pytree.tree_flatten(tree)
    return (pytree.tree_map_only(torch.Tensor, lambda v: v * 2, tree), pytree.tree_map(type, tree), pytree.tree_leaves(tree),
            pytree.tree_unflatten([str(v) if v is None else v for v in leaves], spec), pytree.tree_all(lambda v: v is not None, tree))


@differential(two)
def test_quantised(x, y):
    q = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
    return q.dequantize() + 1, q.q_scale(), torch.fake_quantize_per_tensor_affine(y, 0.1, 0, 0, 255)


@differential(two)
def test_sparse_layouts(x, y):
    s = x.to_sparse()
    return (s * 2).to_dense() + y, s.is_sparse, torch.sparse.mm(s, y.t()), x.to_sparse_csr() @ y.t(), s.coalesce().indices()


@differential(two)
def test_nested(x, y):
    n = torch.nested.nested_tensor([x[0], y[0][:2]])
    jagged = torch.nested.nested_tensor([x[0], y[0][:2]], layout=torch.jagged)
    return torch.nested.to_padded_tensor(n, 0.0), (jagged * 2).values(), n.is_nested


@differential(lambda: (torch.ones(2), torch.Generator().manual_seed(1)))
def test_generators(x, generator):
    mine = torch.Generator().manual_seed(7)
    return torch.rand(2, generator=generator) + x, torch.randn(2, generator=mine), torch.rand(1), generator.initial_seed()


@differential(two)
def test_seeds_and_states(x, y):
    before = torch.get_rng_state()
    a = torch.rand(2)
    torch.set_rng_state(before)
    b = torch.rand(2)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        c = torch.rand(2)
    return a, b, c, torch.rand(2), x + 1


@differential(two, graphs=1)
def test_new_tensors(x, y):
    return (x.new_tensor([1, 2]), x.new_tensor(3), x.new_tensor([[1.5]], dtype=torch.int64), x.long().new_tensor([1.7]), x.type(),
            y.half().type(), x.new_full((2,), 3), x.new_empty(2, 0), y.type(torch.int64), y.type_as(x.double()))


@differential(two)
def test_data(x, y):
    z = x * 2
    x.data = y * 2
    y.data.add_(1)
    return x * 2, z, y.data.data_ptr() == y.data_ptr()


@differential(two)
def test_modes_of_calls(x, y):
    with torch.inference_mode():
        z = x * 2
    torch.use_deterministic_algorithms(True)
    flag = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    torch.set_default_dtype(torch.float64)
    wide = torch.ones(2)
    torch.set_default_dtype(torch.float32)
    return z.is_inference(), z + 0, flag, wide, torch.ones(2), y + 1


@torch.compiler.disable
def left_alone(a):
    return a * 2


@torch.compiler.allow_in_graph
def taken_whole(a):
    return a * 3


@torch.compiler.assume_constant_result
def number():
    return 3


@differential(two)
def test_marks_of_torch_compiler(x, y):
    return left_alone(x) + taken_whole(y) * number(), torch.compiler.is_exporting()


@torch.compiler.assume_constant_result
def refused(number):
    raise LookupError(number)


@differential(two)
def test_an_error_of_a_function_whose_result_is_taken_as_constant(x, y):
    try:
        return refused(3)
    except LookupError as error:
        return x + y, error.args


@differential(lambda: (*two(), [2, 1]), graphs=1)
def test_shapes_that_are_broadcast(x, y, given):
    *front, last = x.shape
    shapes = [torch.broadcast_shapes(x.shape[:1], front), torch.broadcast_shapes(given, (last,), 1)]
    for wrong in ((2,), (3,)), ({}, (2,)), ((2,), [None]):
        try:
            shapes.append(torch.broadcast_shapes(*wrong))
        except (RuntimeError, TypeError) as error:
            shapes.append((type(error), error.args))
    return x * y, shapes


@differential(two)
def test_queries_of_what_torch_does_not_know(x, y):
    told = []
    try:
        torch.promote_types(torch.float32, 3)
    except TypeError as error:
        told.append(error.args)
    try:
        torch.get_autocast_dtype("unknown")
    except RuntimeError as error:
        told.append(error.args)
    return x * y, told


@differential(two)
def test_collate(x, y):
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=1)
    total = sum(b.sum() for (b,) in batches)
    return torch.utils.data.default_collate([{"a": x[0], "b": 1}, {"a": y[0], "b": 2}]), total


@pytest.mark.filterwarnings("ignore")
@differential(lambda: (torch.tensor([1 + 2j, 3 - 1j]), torch.ones(2)))
def test_complex_views(c, x):
    z = c.conj()
    r = torch.view_as_real(c)
    r[0, 0] = 7
    return z, z.is_conj(), z.imag, z.resolve_conj(), c, torch.view_as_complex(r) * x, z.imag.is_neg(), (-z).abs()


@torch.jit.script
def _scripted(x: torch.Tensor, sizes: tuple[int, int], k: float = 2.0) -> tuple[torch.Tensor, int]:
    return x * k + sizes[0], x.size(0) + sizes[1]


@torch.jit.script
def _demanding(x: torch.Tensor) -> torch.Tensor:
    assert x.size(0) > 5
    return x


class Scripts:
    scripted, demanding = _scripted, _demanding


@differential(two, graphs=1)
def test_scripts(x, y):
    return Scripts.scripted(x, (1, 2)), Scripts.scripted(y, sizes=(3, 4), k=0.5)[0].sum()


@differential(two)
def test_scripts_that_fail(x, y):
    try:
        return Scripts.demanding(x)
    except Exception as error:
        return type(error).__name__


@differential(two)
def test_distributions(x, y):
    d = torch.distributions.Normal(x, y.abs() + 1)
    return d.log_prob(y), d.rsample(), torch.distributions.Categorical(logits=x).sample()


@differential(two, graphs=1)
def test_distributions_without_checks(x, y):
    d = torch.distributions.Normal(x, y.abs() + 1, validate_args=False)
    return d.log_prob(y), d.rsample(), torch.distributions.kl_divergence(d, d)


@differential(two, graphs=1)
def test_modules_without_parameters_made_inside(x, y):
    layers = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Softmax(-1), torch.nn.Dropout(0.5))
    return layers(x), len(layers), layers[0](y), torch.jit.annotate(int, 3)


def test_no_words_of_torch_on_errors_that_are_caught(caplog):
    def f(x):
        try:
            return x @ x
        except RuntimeError:
            return x + 1

    import framegraft

    assert framegraft.compile(f, backend="eager")(torch.ones(2, 3)).sum() == 12
    assert not caplog.records


class Covered(torch.distributions.MultivariateNormal):
    @torch.distributions.utils.lazy_property
    def covariance_matrix(self):
        return super().covariance_matrix


@differential(two)
def test_a_lazy_property_that_asks_the_one_it_overrides(x, y):
    made = Covered(torch.zeros(2), precision_matrix=torch.eye(2) * 2)
    return x * y, made.covariance_matrix + 1, made.covariance_matrix is made.covariance_matrix


@differential(lambda: (*two(), Covered(torch.zeros(2), precision_matrix=torch.eye(2) * 2)), graphs=1)
def test_a_lazy_property_from_outside_that_asks_the_one_it_overrides(x, y, given):
    return x * y, given.covariance_matrix + 1


@differential(lambda: (*two(), torch.Size([2, 2])), graphs=1)
def test_new_tensors_of_a_size(x, y, size):
    made = [x.new(x.shape).fill_(1), x.new(size).zero_(), x.new((2, 2)), x.new([3.0]), x.new(3).zero_(), x.new(x.shape + (1,)).fill_(2)]
    return x * y, made, torch.distributions.Laplace(x, y.exp()).rsample()


@differential(two)
def test_a_new_tensor_without_dimensions(x, y):
    return x * y, x.new(torch.Size([])).fill_(1), x.new(()), x.new(x.shape[2:]).fill_(3)


def marked(mark, k):
    def op(x):
        return x * k

    return mark(op)


@pytest.mark.parametrize("mark", [framegraft.allow_in_graph, framegraft.assume_constant_result, framegraft.disallow_in_graph])
def test_marked_functions_of_the_same_code(mark):
    def f(op, x):
        return x + op(x if mark is not framegraft.assume_constant_result else 2)

    def held(ops, x):
        return f(ops[0], x)

    x, ops, compiled = torch.ones(2), [marked(mark, k) for k in (2, 3)], framegraft.compile(f, backend="eager")
    inside = framegraft.compile(held, backend="eager")
    for op in (*ops, *ops):
        assert torch.equal(compiled(op, x), f(op, x))
        assert torch.equal(inside([op], x), f(op, x))


_LIBRARY = torch.library.Library("framegraft_fresh", "DEF")
for _name in "abcd":
    _LIBRARY.define(f"{_name}(Tensor x) -> Tensor")
    _LIBRARY.define(f"{_name}.scaled(Tensor x, float k) -> Tensor")
    _LIBRARY.impl(_name, torch.neg, "CompositeExplicitAutograd")
    _LIBRARY.impl(f"{_name}.scaled", torch.mul, "CompositeExplicitAutograd")


def test_operators_that_nobody_has_asked_for_yet():
    ops = torch.ops
    programs = [
        lambda x: ops.framegraft_fresh.a(x) + 1,
        lambda x: ops.framegraft_fresh.b.default(x) + 1,
        lambda x: ops.framegraft_fresh.c.scaled(x, 2.0) + ops.framegraft_fresh.c(x),
        lambda x: getattr(ops.framegraft_fresh, "d")(x, 3.0),  # noqa: B009
    ]
    for program in programs:
        compiled = framegraft.compile(program, backend="eager", fullgraph=True)
        results = [compiled(torch.ones(2)), compiled(torch.ones(2))]
        assert all(torch.equal(r, program(torch.ones(2))) for r in results)
