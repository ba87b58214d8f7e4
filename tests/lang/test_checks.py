"""Conditions that only the data can tell and that the program takes for granted: captured with a check, failing as in eager mode.

PYTEST_DONT_REWRITE: the assertions are what is tested.
"""

import pytest
import torch

import framegraft

from .differential import differential


def good():
    return (torch.arange(1.0, 4.0),)


def bad():
    return (torch.tensor([1.0, -2.0, float("nan")]),)


@differential(good, graphs=1)
def test_assert_holds(x):
    assert (x > 0).all()
    y = x * 2
    assert y.sum() > 0, f"not positive: {y}"
    assert not (y < 0).any(), "negative"
    return y


@differential(bad)
def test_assert_fails(x):
    y = x * 2
    assert (y > 0).all(), f"not positive: {y.tolist()}"
    return y


@differential(bad)
def test_failing_assert_is_caught(x):
    log = []
    try:
        log.append("before")
        assert (x > 0).all(), "negative"
    except AssertionError as error:
        log.append(str(error))
    return log, x + 1


def refuses(x):
    if (x < 0).any():
        raise KeyError("negative")
    return x + 1


def asserts(x):
    assert (x > 0).all(), "negative"
    return x + 1


@differential(bad)
def test_errors_that_no_operation_raises_are_caught(x):
    log = []
    for fn in (refuses, asserts):
        try:
            log.append(fn(x))
        except KeyError as error:
            log.append(error.args)
        except AssertionError as error:
            log.append(str(error))
    return log


@differential(bad)
def test_assert_handled_where_it_stands(x):
    if (x < 0).any():
        try:
            raise ValueError("negative")
        except ValueError as error:
            return str(error)
    return x


@differential(good, graphs=1)
def test_branch_that_only_raises(x):
    if torch.isnan(x).any():
        raise ValueError(f"nan in {x}")
    if (x > 0).all():
        y = x.log()
    else:
        raise ArithmeticError("logarithm of a negative number")
    return y


@differential(bad)
def test_branch_raises(x):
    y = [x + 1]
    if torch.isnan(x).any():
        raise ValueError("nan")
    return y


def required(x):
    torch._assert((x > 0).all(), "not positive")
    return x.sqrt()


@differential(good, graphs=1)
def test_assert_function(x):
    return required(x), required(x + 1)


@differential(bad)
def test_assert_function_fails(x):
    return required(x), required(x + 1)


@differential(lambda: (torch.tensor(float("nan")), torch.tensor([0, 1])))
def test_truth_of_peculiar_values(x, many):
    assert x
    try:
        assert many
    except RuntimeError as error:
        return str(error)


@differential(bad)
def test_input_changed_before_a_failing_check(x):
    x.add_(1)
    assert (x > 0).all()
    return x


@differential(bad)
def test_random_numbers_before_a_failing_check(x):
    y = torch.rand(3)
    assert (x > 0).all()
    return y


class Checked(torch.nn.Module):
    def forward(self, x):
        assert (x < 1000).all(), "too large"
        return x * 2


LAYERS = torch.nn.Sequential(*(Checked() for _ in range(4)))


@differential(good, graphs=1)
def test_layers_with_checks(x):
    return LAYERS(x)


@differential(lambda: (torch.arange(100.0, 104.0),))
def test_a_later_layer_fails(x):
    return LAYERS(x)


def test_whole_graphs_take_numbers_from_data():
    def f(x, lengths):
        assert lengths.max().item() <= x.shape[0], "too long"
        return x / lengths.sum().item()

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    x = torch.randn(5)
    for lengths in (torch.tensor([2, 3]), torch.tensor([5, 1])):
        torch.testing.assert_close(compiled(x, lengths), f(x, lengths), rtol=0, atol=0)
    with pytest.raises(AssertionError, match="too long"):
        compiled(x, torch.tensor([6, 1]))
    assert framegraft.stats()["graphs"] == 1


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_checks_behind_compilers(backend):
    @framegraft.compile(backend=backend)
    def f(x):
        assert (x > 0).all(), "negative"
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x.log()

    torch.testing.assert_close(f(torch.ones(3)), torch.zeros(3))
    with pytest.raises(AssertionError, match="negative"):
        f(-torch.ones(3))
    assert framegraft.stats()["graph_breaks"] == 0


def drawing(x):
    y = torch.rand(3) + x
    assert (y > 0).all(), "negative"
    return y + torch.rand(3)


@differential(good, graphs=1)
def test_check_behind_random_numbers(x):
    return drawing(x)


@differential(bad)
def test_failing_check_behind_random_numbers(x):
    torch.rand(1)
    try:
        drawing(x)
    except AssertionError:
        return torch.rand(2)


@differential(good, graphs=1)
def test_distributions(x):
    from torch.distributions import Beta, Categorical, Normal, TanhTransform, TransformedDistribution

    drawn = Categorical(logits=x).sample()
    squashed = TransformedDistribution(Normal(x, 1.0), [TanhTransform()])
    return drawn, Categorical(logits=x).log_prob(drawn), Beta(x, x).rsample(), squashed.log_prob(torch.tensor(0.5)), squashed.rsample()


@differential(bad)
def test_distributions_refuse_parameters(x):
    return torch.distributions.Normal(x, -x, validate_args=True).sample()


class Named(property):
    pass


class Owner:
    @Named
    def twice(self):
        return self.value * 2


@differential(good, graphs=1)
def test_kinds_of_properties(x):
    owner = Owner()
    owner.value = x
    return owner.twice, isinstance(Owner.__dict__["twice"], Named)


def said_to_be_two(x, n):
    k = n.item()
    torch._check(k == 2)
    return x + k


def said_to_be_the_size(x, n):
    k = n.item()
    torch._check(k == x.shape[0])
    return x + k


def said_of_a_sum(x, n):
    k = n.item() + 1
    torch._check(k * 2 == 6)
    return x + k, torch.tensor([k, 1])


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [said_to_be_two, said_to_be_the_size, said_of_a_sum])
def test_numbers_that_are_not_what_is_said_of_them(program, backend, dynamic):
    x, told = torch.ones(2), []
    compiled = framegraft.compile(program, backend=backend, dynamic=dynamic)
    with framegraft.config.patch(capture_scalar_outputs=True):
        for fn in (program, compiled):
            for n in (1, 2, 3, 2):
                try:
                    told.append(str(fn(x, torch.tensor(n))))
                except RuntimeError as error:
                    told.append(type(error))
    assert told[:4] == told[4:] and told.count(RuntimeError) == 4
