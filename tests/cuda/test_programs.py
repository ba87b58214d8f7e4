"""What programs do with an accelerator: tensors there, moves between devices, its random numbers, streams, modes and settings."""

import contextlib
import warnings

import pytest
import torch
import torch.nn.functional as F

from ..lang.differential import differential

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


def ramp():
    return (torch.arange(1.0, 13.0, device="cuda").reshape(3, 4),)


def leaf():
    return (torch.arange(1.0, 13.0, device="cuda").reshape(3, 4).requires_grad_(),)


@differential(ramp, graphs=1)
def test_operators(x):
    y = (x * 2 + 1).sin() @ x.T
    z = torch.cat([y, y[:, :1]], 1).softmax(-1)
    return z, z.sum(0), z.argmax(), x.cumsum(1), x[x.argmax(0)], torch.where(x > 3, x, -x), x.sort(descending=True)


@differential(leaf, graphs=1)
def test_gradients(x):
    y = F.layer_norm(x, (4,)) * x.sigmoid()
    return y, F.gelu(y).sum()


@differential(lambda: (torch.randn(2, 3, 8, 8, device="cuda"), torch.randn(4, 3, 3, 3, device="cuda")), graphs=1)
def test_formats_of_memory(x, w):
    x, w = x.to(memory_format=torch.channels_last), w.to(memory_format=torch.channels_last)
    y = F.conv2d(x, w, padding=1)
    return y.stride(), y.shape, (y + 1).stride(), F.max_pool2d(y, 2).stride(), F.avg_pool2d(y, 2).stride(), (y.mean((2, 3), keepdim=True) + y).stride()


def operands():
    return tuple(torch.randn(2, 4, 16, 32, device="cuda", dtype=torch.float16) for _ in range(3))


@differential(operands, graphs=1)
def test_strides_of_attention(q, k, v):
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.stride(), y.transpose(1, 2).reshape(2, 16, 128).stride(), y.transpose(1, 2).is_contiguous()


@differential(ramp, graphs=1)
def test_there_and_back(x):
    y = x.cpu() + 1
    z = y.to("cuda") * 2
    return y, z, z.to(x.device) is z, y.cuda().sum(), x.to("cpu", torch.float64), x.to(y), y.to(x.device, non_blocking=True)


@differential(ramp, graphs=1)
def test_devices_as_values(x):
    device = x.device
    like = torch.zeros(2, device=device), torch.ones(2, device=f"cuda:{device.index}"), torch.full((2,), 3.0, device="cuda")
    return device, device.type, device.index, x.is_cuda, x.is_cpu, x.get_device(), str(device), x.type(), device == torch.device("cuda:0"), like


@differential(ramp, graphs=1)
def test_numbers_from_the_other_device(x):
    number = torch.tensor(2.0)
    return x * number, x + number.double(), number + x, torch.where(x > number, x, number)


@differential(ramp)
def test_devices_that_do_not_fit(x):
    return x + torch.ones(4)


@differential(ramp)
def test_devices_that_do_not_fit_and_are_told(x):
    try:
        return x + torch.ones(4)
    except RuntimeError as error:
        return str(error)[:40]


@differential(ramp, graphs=1)
def test_default_devices(x):
    with torch.device("cuda"):
        inside = torch.ones(3), torch.arange(4), torch.tensor([1.0, 2.0])
    return inside, torch.ones(3), x + 1


@differential(ramp, graphs=1)
def test_current_devices(x):
    y = x + 1
    with torch.cuda.device(x.device):
        y = y[0] * torch.ones(4, device="cuda")
    return y, torch.cuda.current_device(), torch.cuda.device_count(), torch.cuda.is_available(), torch.cuda.is_initialized()


@differential(ramp, graphs=1)
def test_what_the_device_can_do(x):
    y = x + 1
    name, capability = torch.cuda.get_device_name(), torch.cuda.get_device_capability(x.device)
    return y * capability[0], name, torch.cuda.is_bf16_supported()


@differential(ramp)
def test_properties(x):
    properties = torch.cuda.get_device_properties(x.device)
    return x * properties.major, properties.multi_processor_count


@differential(ramp, graphs=1)
def test_the_devices_default_for_tensors(x):
    return torch.cuda.FloatTensor([1, 2]) + x[0, :2]


@differential(ramp, graphs=1)
def test_lists_of_tensors_and_numbers(x):
    return torch.tensor([x[0, 0], 2.0], device="cuda"), torch.tensor([x[0, 0], x[1, 1]]), torch.tensor([1, 2], device=x.device), x.new_tensor([1.0, 2.0])


@differential(ramp, graphs=1)
def test_random_numbers(x):
    a = torch.rand(3, device="cuda")
    b = F.dropout(x, 0.5)
    return a, b, torch.randn_like(x), torch.randint(5, (3,), device="cuda"), torch.bernoulli(x / 13), torch.randperm(5, device="cuda")


@differential(ramp)
def test_seeds(x):
    torch.manual_seed(3)
    a = torch.rand(3, device="cuda")
    torch.cuda.manual_seed(3)
    b = torch.rand(3, device="cuda")
    torch.cuda.manual_seed_all(4)
    return a, b, torch.rand(3, device="cuda"), torch.rand(3)


@differential(ramp)
def test_states_of_random_numbers(x):
    before = torch.cuda.get_rng_state()
    a = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(before)
    b = torch.rand(3, device="cuda")
    with torch.random.fork_rng():
        c = torch.rand(3, device="cuda")
    return a, b, c, torch.rand(3, device="cuda")


@differential(ramp)
def test_generators(x):
    generator = torch.Generator(device="cuda").manual_seed(5)
    return torch.rand(3, device="cuda", generator=generator), torch.randn(3, device="cuda", generator=generator), torch.rand(2, device="cuda")


@differential(leaf, graphs=1)
def test_autocast(x):
    x = x + 1
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = x @ x.T
        z = y.softmax(-1), (y * 2).dtype
    with torch.autocast(device_type="cuda", dtype=torch.float16, enabled=False):
        w = x @ x.T
    return y, z, w, torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")


@differential(leaf)
def test_autocast_in_the_older_spelling(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.cuda.amp.autocast():
            y = x @ x.T
    return y, torch.is_autocast_enabled()


@torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
def _forward(ctx, x):
    ctx.save_for_backward(x)
    return x.exp()


@torch.amp.custom_bwd(device_type="cuda")
def _backward(ctx, g):
    return g * ctx.saved_tensors[0].exp()


class Casting(torch.autograd.Function):
    forward = staticmethod(_forward)
    backward = staticmethod(_backward)


@differential(leaf)
def test_functions_that_know_of_autocast(x):
    with torch.autocast("cuda"):
        return Casting.apply(x.half()), Casting.apply(x)


@differential(ramp)
def test_streams(x):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = x * 2
    torch.cuda.current_stream().wait_stream(stream)
    y.record_stream(torch.cuda.current_stream())
    return y + 1, torch.cuda.current_stream() == torch.cuda.default_stream()


@differential(ramp)
def test_events(x):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    y = x @ x.T
    end.record()
    torch.cuda.synchronize()
    return y, begin.elapsed_time(end) >= 0, end.query()


@differential(ramp)
def test_memory(x):
    before = torch.cuda.memory_allocated()
    y = torch.ones(1 << 20, device="cuda")
    return torch.cuda.memory_allocated() - before >= 1 << 22, torch.cuda.max_memory_allocated() > 0, y.sum() + x.sum()


@differential(ramp)
def test_pinned_memory(x):
    y = x.cpu().pin_memory()
    return y.is_pinned(), y.to("cuda", non_blocking=True) + x, torch.ones(2, pin_memory=True).is_pinned(), x.is_pinned()


@differential(ramp)
def test_settings(x):
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = not before
    y = x @ x.T
    inside = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = before
    return y, inside, torch.backends.cuda.flash_sdp_enabled(), torch.backends.cudnn.enabled, torch.backends.cudnn.version()


@differential(operands)
def test_backends_of_attention(q, k, v):
    with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
        y = F.scaled_dot_product_attention(q, k, v)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        z = F.scaled_dot_product_attention(q, k, v)
    return y, z, y.stride(), z.stride()


@differential(ramp)
def test_ranges_for_profilers(x):
    with torch.cuda.nvtx.range("part"), torch.profiler.record_function("part"):
        y = x + 1
    torch.cuda.nvtx.range_push("more")
    z = y * 2
    torch.cuda.nvtx.range_pop()
    return z


@differential(ramp)
def test_sizes_that_data_decides(x):
    return x[x > 4], x.nonzero(), torch.unique(x % 3), torch.masked_select(x, x > 2).sum(), x[x > 100].numel()


@differential(ramp)
def test_branches_on_data(x):
    if x.sum() > 3:
        y = x * x.max().item()
    else:
        y = x
    return y, int(x.argmax()), x.tolist(), y.cpu().numpy()


@differential(ramp)
def test_numpy_there(x):
    return x.numpy()  # TypeError: of a tensor of the device


@differential(lambda: (*leaf(), torch.tensor([0, 2], device="cuda")), graphs=1)
def test_in_place(x, at):
    y = x.clone()
    y[0] = 1.0
    y[:, 1] += 2
    y[at] = y[at] * 2
    y.mul_(2).add_(x)
    return y


@differential(ramp, graphs=1)
def test_writes_to_arguments(x):
    x[0].fill_(2)
    x.t_()
    return x


@differential(lambda: (torch.randn(3, 4, 8, device="cuda"),), build=True, graphs=1)
def test_recurrent_layers():
    torch.manual_seed(0)
    # torch 2.11 decomposes into states of another shape: its graph breaks
    layer = torch.nn.LSTM(8, 16, 2, batch_first=True).cuda()

    def run(x):
        y, (h, c) = layer(x)
        return y, h, c

    return run


@differential(lambda: (torch.randn(4, 3, 8, 8, device="cuda"),), build=True, graphs=1)
def test_training_layers():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(5))
    layers = layers.cuda()
    layers(torch.randn(4, 3, 8, 8, device="cuda"))

    def run(x):
        y = layers(x)
        return y, layers[1].running_mean.clone(), layers[1].num_batches_tracked.clone()

    return run


@differential(ramp, build=True)
def test_modules_that_move():
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 2)

    def run(x):
        first = layer.to(x.device)(x)
        second = layer.cpu()(x.cpu())
        return first, second, layer.weight.device

    return run


@differential(ramp, build=True, graphs=1)
def test_transforms():
    def run(x):
        per_row = torch.func.vmap(lambda row: row.softmax(0) @ row)(x)
        gradient = torch.func.grad(lambda y: (y.sin() * y).sum())(x)
        return per_row, gradient, torch.func.jvp(torch.tanh, (x,), (torch.ones_like(x),))

    return run


@differential(leaf)
def test_checkpoints(x):
    def part(y):
        return F.dropout(y.sin(), 0.5) * 2

    return torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False)


@differential(leaf)
def test_hooks(x):
    y = x * 2
    y.register_hook(lambda g: g.clamp(-1, 1))
    return (y * y).sum()


@differential(ramp, build=True)
def test_several_blocks_of_the_same_kind():
    torch.manual_seed(0)
    layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True) for _ in range(3)).cuda().eval()

    def run(x):
        with torch.no_grad():
            for layer in layers:
                x = layer(x)
        return x

    return run


@differential(ramp)
def test_errors(x):
    found = []
    for attempt in (lambda: x @ x, lambda: x.cpu() @ x.T, lambda: torch.ones(2, device="cuda:99"), lambda: x[5], lambda: x.view(5), lambda: x.double() @ x.T):
        with contextlib.suppress(IndexError):
            try:
                attempt()
            except RuntimeError as error:
                found.append((type(error).__name__, str(error)[:30]))
    return found


@differential(ramp, graphs=1)
def test_asks_where_a_tensor_is(x):
    return (x if x.device.type == "cuda" else -x) + (1 if x.is_cuda and isinstance(x, torch.cuda.FloatTensor) else 2)
