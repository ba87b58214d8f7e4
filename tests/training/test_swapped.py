"""Tensors that are swapped for others behind a capture: torch refuses to swap one that is weakly referenced."""

import pytest
import torch

import framegraft


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "aot_eager_decomp_partition"])
def test_parameters(backend, dynamic):
    def run(capture):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
        step = capture(lambda x: model(x).square().sum())
        seen = []
        for dtype in (torch.float32, torch.float64, torch.float32):
            model.to(dtype)
            model.zero_grad()
            loss = step(torch.ones(4, 3, dtype=dtype))
            loss.backward()
            seen += [loss.detach(), *(p.grad for p in model.parameters())]
        torch.utils.swap_tensors(model[0].weight, torch.nn.Parameter(torch.ones(3, 3)))
        return [*seen, step(torch.ones(4, 3)).detach()]

    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        for got, expected in zip(run(lambda f: framegraft.compile(f, backend=backend, dynamic=dynamic)), run(lambda f: f), strict=True):
            torch.testing.assert_close(got, expected)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


@pytest.mark.parametrize("data", [torch.ones(1), torch.ones(2, dtype=torch.float64)], ids=["size", "dtype"])
def test_data_that_the_gradient_does_not_fit(data):
    """``p.data = ...`` leaves ``p.grad`` as it is."""
    def run(capture):
        w = torch.nn.Parameter(torch.ones(2))
        f = capture(lambda x: (x * w).sum())
        f(torch.ones(2)).backward()
        w.data = data
        loss = f(torch.ones(2))
        grad, = torch.autograd.grad(loss, w)
        return loss.detach(), grad, w.grad

    for got, expected in zip(run(lambda f: framegraft.compile(f, backend="aot_eager")), run(lambda f: f), strict=True):
        torch.testing.assert_close(got, expected)
