"""Compilers and training on an accelerator: inductor and Triton, CUDA graphs, kernels of the user's, optimizers, scaled gradients."""

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import framegraft
from framegraft.testing import CompileCounter

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


def model():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4))
    return layers.cuda()


def close(a, b):
    torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-4)


def trained(run, layers, optimizer, steps=4):
    torch.manual_seed(1)
    losses = []
    for _ in range(steps):
        x, y = torch.randn(8, 16, device="cuda"), torch.randint(4, (8,), device="cuda")
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(run(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses), [p.detach().clone() for p in layers.parameters()]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_training(backend):
    results = []
    for wrap in (lambda m: m, lambda m: framegraft.compile(m, backend=backend, fullgraph=True)):
        layers = model()
        results.append(trained(wrap(layers), layers, torch.optim.AdamW(layers.parameters(), lr=1e-2)))
    close(results[1], results[0])


@pytest.mark.parametrize("options", [{}, {"fused": True}, {"foreach": True}, {"capturable": True}])
@pytest.mark.parametrize("cls", [torch.optim.Adam, torch.optim.SGD])
def test_optimizers(cls, options):
    if cls is torch.optim.SGD and "capturable" in options:
        pytest.skip("Adam's")
    results = []
    for compiled in (False, True):
        layers = model()
        optimizer = cls(layers.parameters(), lr=1e-2, **options)
        if compiled:
            optimizer.step = framegraft.compile(optimizer.step)
        results.append(trained(layers, layers, optimizer))
    close(results[1], results[0])


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_scaled_gradients(backend):
    def step(layers, x, y, scaler, optimizer, run):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(run(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(layers.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    results = []
    for compiled in (False, True):
        layers = model()
        optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
        run = framegraft.compile(layers, backend=backend) if compiled else layers
        torch.manual_seed(1)
        losses = [step(layers, torch.randn(8, 16, device="cuda"), torch.randint(4, (8,), device="cuda"), scaler, optimizer, run) for _ in range(4)]
        results.append((torch.stack(losses), [p.detach() for p in layers.parameters()], scaler.get_scale()))
    close(results[1], results[0])


@pytest.mark.parametrize("mode", [None, "reduce-overhead", "max-autotune-no-cudagraphs"])
def test_modes_of_inductor(mode):
    layers = model().eval()
    compiled = framegraft.compile(layers, backend="inductor", mode=mode, fullgraph=True)
    with torch.no_grad():
        for n in range(4):
            x = torch.randn(8, 16, device="cuda", generator=torch.Generator("cuda").manual_seed(n))
            close(compiled(x).clone(), layers(x))


def test_compiled_steps_of_a_loop_in_cuda_graphs():
    def step(x):
        return (x @ x).relu() + 1

    compiled = framegraft.compile(step, backend="inductor", mode="reduce-overhead")
    for n in range(5):
        x = torch.full((16, 16), float(n), device="cuda")
        close(compiled(compiled(x).clone()).clone(), step(step(x)))


def test_captured_calls_in_a_cuda_graph():
    layers = model().eval()
    compiled = framegraft.compile(layers)
    x = torch.randn(8, 16, device="cuda")
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                compiled(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = compiled(x)
        x.copy_(torch.randn(8, 16, device="cuda"))
        graph.replay()
        close(y, layers(x))


def test_the_captured_graph_is_of_the_device():
    counter = CompileCounter()
    compiled = framegraft.compile(lambda x: x * 2 + 1, backend=counter)
    x = torch.arange(4.0)
    assert torch.equal(compiled(x), x * 2 + 1)
    assert torch.equal(compiled(x.cuda()).cpu(), x * 2 + 1)
    assert torch.equal(compiled(x.cuda()).cpu(), x * 2 + 1)
    assert counter.frame_count == 2  # one for each device


def test_parameters_that_move():
    counter = CompileCounter()
    layer = torch.nn.Linear(4, 4)
    compiled = framegraft.compile(layer, backend=counter)
    x = torch.randn(2, 4)
    for device in ("cpu", "cuda", "cpu", "cuda"):
        layer.to(device)
        assert torch.equal(compiled(x.to(device)), layer(x.to(device)))
    assert counter.frame_count == 2


def test_dynamic_sizes():
    counter = CompileCounter()
    compiled = framegraft.compile(lambda x: (x * 2).sum(0).softmax(0), backend=counter)
    for n in range(2, 9):
        x = torch.randn(n, 5, device="cuda")
        assert torch.equal(compiled(x), (x * 2).sum(0).softmax(0))
    assert counter.frame_count == 2
    behind = framegraft.compile(lambda x: (x * 2).sum(0).softmax(0), backend="inductor", dynamic=True)
    for n in range(2, 9):
        x = torch.randn(n, 5, device="cuda")
        close(behind(x), (x * 2).sum(0).softmax(0))


def test_kernels_of_the_users():
    triton = pytest.importorskip("triton")
    tl = triton.language
    globals()["tl"] = tl

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):  # noqa: N803 - Triton's custom
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = at < n
        tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)

    def run(x, y):
        x = x * 2
        out = torch.empty_like(x)
        n = out.numel()
        add[(triton.cdiv(n, 64),)](x, y, out, n, BLOCK=64)
        return out.sum() + 1

    x, y = torch.randn(100, device="cuda"), torch.randn(100, device="cuda")
    for backend in ("eager", "inductor"):
        compiled = framegraft.compile(run, backend=backend)
        close(compiled(x, y), run(x, y))
        close(compiled(y, x), run(y, x))


def test_operators_of_the_users():
    @torch.library.custom_op("framegraft_tests::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    scaled.register_fake(lambda x, by: torch.empty_like(x))

    def run(x):
        return scaled(x.sin(), 3.0).cos()

    x = torch.randn(8, device="cuda")
    for backend in ("eager", "aot_eager", "inductor"):
        close(framegraft.compile(run, backend=backend, fullgraph=True)(x), run(x))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_flexible_attention(backend):
    q, k, v = (torch.randn(1, 2, 128, 32, device="cuda") for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device="cuda")

    def run(q, k, v):
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + (i - j) * 0.1, block_mask=mask)

    close(framegraft.compile(run, backend=backend)(q, k, v), run(q, k, v))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_dropout_in_training_is_of_the_stream(backend):
    def run(x):
        return F.dropout(x, 0.5)

    compiled = framegraft.compile(run, backend=backend)
    x = torch.ones(1000, device="cuda", requires_grad=True)
    y = compiled(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach()) and 300 < int((y > 0).sum()) < 700
    assert not torch.equal(compiled(x), y)
