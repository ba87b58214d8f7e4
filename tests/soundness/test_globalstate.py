"""Process-wide state of torch and Python."""

import random
import warnings

import torch
import torch.distributed as dist

from .harness import X, defer, module, patch, probe


@probe
def test_grad_mode(C):
    w = X().requires_grad_()
    c = C(lambda x: x * w)
    a = c(X())
    with torch.no_grad():
        b = c(X())
    with torch.inference_mode():
        d = c(X()).is_inference()
    return a, b, d, c(X())


@probe
def test_default_dtype(C):
    c = C(lambda x: (x + torch.ones(3), torch.get_default_dtype()))
    a = c(X())
    torch.set_default_dtype(torch.float64)
    return a, c(X().float())


@probe
def test_default_device(C):
    c = C(lambda x: torch.ones(2).device)
    x = X()
    a = c(x)
    with torch.device("meta"):
        b = c(x)
    return a, b, c(x)


@probe
def test_autocast(C):
    c = C(lambda x: (x.view(1, 3) @ x.view(3, 1)).dtype)
    a = c(X())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        b = c(X())
    with torch.autocast("cpu", dtype=torch.float16):
        d = c(X())
    return a, b, d, c(X())


@probe
def test_deterministic(C):
    c = C(lambda x: (torch.are_deterministic_algorithms_enabled(), x + 1))
    a = c(X())
    torch.use_deterministic_algorithms(True)
    defer(lambda: torch.use_deterministic_algorithms(False))
    return a, c(X())


@probe
def test_random_stream(C):
    c = C(lambda x: x + torch.rand(3))
    a = c(X())
    b = c(X())
    torch.manual_seed(0)
    return a, b, c(X()), torch.rand(1)


@probe
def test_python_random(C):
    m = module("def f(x): return x * random.random()", random=random)
    c = C(m.f)
    a = c(X())
    b = c(X())
    random.seed(0)
    return a, b, c(X()), random.random()


@probe
def test_grad_mode_left_changed(C):
    def f(x, on):
        torch.set_grad_enabled(on)
        return x * 2

    c = C(f)
    w = X().requires_grad_()
    a = c(w, False)
    one = torch.is_grad_enabled()
    b = c(w, True)
    return a, one, b, torch.is_grad_enabled()


@probe
def test_torch_function_mode(C):
    from torch.overrides import TorchFunctionMode

    class Plus(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            return out + 100 if func in (torch.sin,) else out

    c = C(lambda x: torch.sin(x))
    a = c(X())
    with Plus():
        b = c(X())
    return a, b, c(X())


@probe
def test_dispatch_mode(C):
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func.name())
            return func(*args, **(kwargs or {}))

    c = C(lambda x: torch.sin(x) * 2)
    c(X())
    before = len(seen)
    with Log():
        r = c(X())
    return before, seen, r


@probe
def test_saved_tensor_hooks(C):
    c = C(lambda x: x * x)
    packed = []

    def go():
        x = X().requires_grad_()
        c(x).sum().backward()
        return x.grad

    a = go()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t * 2, lambda t: t):
        b = go()
    return a, b, len(packed)


@probe
def test_warnings_filter(C):
    m = module("def f(x):\n    warnings.warn('careful')\n    return x + 1", warnings=warnings)
    c = C(m.f)
    counts = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            c(X())
            counts.append(len(caught))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            c(X())
        except UserWarning as error:
            counts.append(str(error))
    return counts


@probe
def test_anomaly_mode(C):
    c = C(lambda x: (x + 1, torch.is_anomaly_enabled()))
    a = c(X())
    with torch.autograd.set_detect_anomaly(True):
        b = c(X())
    return a, b


@probe
def test_matmul_precision(C):
    c = C(lambda x: (x + 1, torch.get_float32_matmul_precision()))
    a = c(X())
    old = torch.get_float32_matmul_precision()
    defer(lambda: torch.set_float32_matmul_precision(old))
    torch.set_float32_matmul_precision("medium")
    return a, c(X())


@probe
def test_num_threads_read(C):
    old = torch.get_num_threads()
    defer(lambda: torch.set_num_threads(old))
    torch.set_num_threads(1)
    c = C(lambda x: x * torch.get_num_threads())
    a = c(X())
    torch.set_num_threads(2)
    return a, c(X())


@probe
def test_print_options(C):
    c = C(lambda x: str(x))
    a = c(X() / 3)
    torch.set_printoptions(precision=2)
    defer(lambda: torch.set_printoptions(profile="default"))
    return a, c(X() / 3)


@probe
def test_recursion_and_trace_kept(C):
    import sys

    old = sys.getrecursionlimit()
    defer(lambda: sys.setrecursionlimit(old))
    m = module("def f(x): return x * (sys.getrecursionlimit() % 7)", sys=sys)
    c = C(m.f)
    a = c(X())
    sys.setrecursionlimit(old + 1)
    return a, c(X())


@probe
def test_tensor_method_patched(C):
    c = C(lambda x: x.relu() + 1)
    a = c(X())
    patch(torch.Tensor, "relu", lambda self: self * 50)
    return a, c(X())


@probe
def test_tensor_operator_patched(C):
    c = C(lambda x: x + 1)
    a = c(X())
    old = torch.Tensor.__add__
    patch(torch.Tensor, "__add__", lambda self, other: old(self, other) * 3)
    return a, c(X())


@probe
def test_autograd_function_patched(C):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def go(c):
        x = X().requires_grad_()
        y = c(x)
        y.sum().backward()
        return y, x.grad

    c = C(lambda x: Twice.apply(x))
    a = go(c)
    Twice.backward = staticmethod(lambda ctx, g: g * 7)
    b = go(c)
    Twice.forward = staticmethod(lambda ctx, x: x * 5)
    return a, b, go(c)


@probe
def test_process_group(C):
    f = C(lambda x: x * 2 if dist.is_available() and dist.is_initialized() and dist.get_world_size() == 1 else x + dist.is_initialized())
    seen = [f(X())]
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        seen.append(f(X()))
    finally:
        dist.destroy_process_group()
    seen.append(f(X()))
    return seen


@probe
def test_number_of_threads(C):
    f = C(lambda x: x + torch.get_num_threads())
    before = torch.get_num_threads()
    seen = []
    for n in (1, 3, before):
        torch.set_num_threads(n)
        seen.append(f(X()))
    return seen


@probe
def test_warnings_of_torch(C):
    f = C(lambda x: x + torch.is_warn_always_enabled())
    seen = [f(X())]
    torch.set_warn_always(True)
    defer(lambda: torch.set_warn_always(False))
    seen.append(f(X()))
    return seen
