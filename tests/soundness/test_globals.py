"""Globals, builtins and modules' attributes."""

import builtins
import functools
import math
import os
import types

import torch

from .harness import X, defer, module, outcome, patch, probe


@probe
def test_number_rebound(C):
    m = module("K = 2\ndef f(x): return x * K")
    c = C(m.f)
    a = c(X())
    m.K = 3
    return a, c(X())


@probe
def test_int_becomes_equal_bool(C):
    m = module("K = 1\ndef f(x): return x * K, type(K)")
    c = C(m.f)
    a = c(X())
    m.K = True
    return a, c(X())


@probe
def test_zero_becomes_negative_zero(C):
    m = module("K = 0.0\ndef f(x): return x * K")
    c = C(m.f)
    a = c(X())
    m.K = -0.0
    return a, c(X())


@probe
def test_tensor_rebound(C):
    m = module("K = torch.ones(3)\ndef f(x): return x + K")
    c = C(m.f)
    a = c(X())
    m.K = torch.full((3,), 9.0)
    return a, c(X())


@probe
def test_tensor_changed_in_place_to_other_dtype(C):
    m = module("K = torch.ones(3)\ndef f(x): return x + K")
    c = C(m.f)
    a = c(X())
    m.K.data = torch.ones(3, dtype=torch.float64)
    return a, c(X())


@probe
def test_list_global_grows(C):
    m = module("K = [1, 2]\ndef f(x):\n    for k in K: x = x * k\n    return x")
    c = C(m.f)
    a = c(X())
    m.K.append(7)
    return a, c(X())


@probe
def test_dict_global_reordered(C):
    m = module("K = {'a': 2, 'b': 3}\ndef f(x):\n    for k in K: x = x * 2 + K[k]\n    return x, list(K)")
    c = C(m.f)
    a = c(X())
    m.K["a"] = m.K.pop("a")
    return a, c(X())


@probe
def test_missing_key_appears(C):
    m = module("K = {}\ndef f(x): return x * K.get('k', 1)")
    c = C(m.f)
    a = c(X())
    m.K["k"] = 5
    return a, c(X())


@probe
def test_name_appears(C):
    m = module("def f(x):\n    try: return x * K\n    except NameError: return x")
    c = C(m.f)
    a = c(X())
    m.K = 4
    return a, c(X())


@probe
def test_builtin_shadowed(C):
    m = module("def f(x, items): return x * max(items)")
    c = C(m.f)
    a = c(X(), [1, 2])
    m.max = lambda items: 50
    return a, c(X(), [1, 2])


@probe
def test_builtins_module_patched(C):
    m = module("def f(x): return x * abs(-2)")
    c = C(m.f)
    a = c(X())
    patch(builtins, "abs", lambda v: 9)
    return a, c(X())


@probe
def test_helper_rebound(C):
    m = module("def g(x): return x + 1\ndef f(x): return g(x)")
    c = C(m.f)
    a = c(X())
    m.g = lambda x: x - 1
    return a, c(X())


@probe
def test_helpers_helper_rebound(C):
    m = module("def h(x): return x + 1\ndef g(x): return h(x) * 2\ndef f(x): return g(x)")
    c = C(m.f)
    a = c(X())
    m.h = lambda x: x * 0
    return a, c(X())


@probe
def test_module_attribute_of_package(C):
    inner = types.ModuleType("inner")
    inner.k = 2
    outer = types.ModuleType("outer")
    outer.inner = inner
    m = module("def f(x): return x * pkg.inner.k", pkg=outer)
    c = C(m.f)
    a = c(X())
    inner.k = 3
    b = c(X())
    outer.inner = types.SimpleNamespace(k=10)
    return a, b, c(X())


@probe
def test_module_getattr(C):
    m = module("def f(x): return x * pkg.k", pkg=types.ModuleType("pkg"))
    m.pkg.__getattr__ = lambda name: 2
    c = C(m.f)
    a = c(X())
    m.pkg.k = 6
    return a, c(X())


@probe
def test_math_constant_patched(C):
    m = module("def f(x): return x * math.tau", math=math)
    c = C(m.f)
    a = c(X())
    patch(math, "tau", 1.0)
    return a, c(X())


@probe
def test_torch_function_patched(C):
    m = module("def f(x): return torch.sin(x)")
    c = C(m.f)
    a = c(X())
    patch(torch, "sin", torch.cos)
    return a, c(X())


@probe
def test_functional_patched(C):
    m = module("F = torch.nn.functional\ndef f(x): return F.relu(x - 2)")
    c = C(m.f)
    a = c(X())
    patch(torch.nn.functional, "relu", torch.neg)
    return a, c(X())


@probe
def test_environment(C):
    patch_name = "FRAMEGRAFT_PROBE"
    os.environ[patch_name] = "2"
    defer(lambda: os.environ.pop(patch_name, None))
    m = module("def f(x): return x * int(os.environ.get('FRAMEGRAFT_PROBE', '1'))", os=os)
    c = C(m.f)
    a = c(X())
    os.environ[patch_name] = "5"
    b = c(X())
    del os.environ[patch_name]
    return a, b, c(X())


@probe
def test_global_deleted_inside_then_again(C):
    m = module("K = 2\ndef f(x):\n    global K\n    K += 1\n    return x * K")
    c = C(m.f)
    return [c(X()) for _ in range(3)], m.K


@probe
def test_partial_global(C):
    m = module("def f(x): return g(x)", g=functools.partial(torch.mul, other=2))
    c = C(m.f)
    a = c(X())
    m.g = functools.partial(torch.mul, other=3)
    b = c(X())
    m.g.keywords["other"] = 4
    return a, b, c(X())


@probe
def test_name_deleted(C):
    m = module("K = 2\ndef f(x): return x * K")
    c = C(m.f)
    a = c(X())
    del m.K
    return a, outcome(lambda: c(X()))


@probe
def test_set_global(C):
    m = module("K = {1, 2}\ndef f(x, n): return x if n in K else -x")
    c = C(m.f)
    a = c(X(), 3)
    m.K.add(3)
    return a, c(X(), 3)


@probe
def test_nested_tuple_global(C):
    m = module("K = (1, [2, 3])\ndef f(x): return x * K[1][0]")
    c = C(m.f)
    a = c(X())
    m.K[1][0] = 8
    return a, c(X())
