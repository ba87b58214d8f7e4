"""Finds where torch keeps a tensor's metadata, by looking at probe tensors of known metadata, and verifies it.

No torch header is needed at build time, and one build serves many torch releases. What is ambiguous or fails the
verification is read through Python attributes instead, with a warning. FRAMEGRAFT_NO_CALIBRATION=1 forces that path.
"""

from __future__ import annotations

import abc
import ctypes
import importlib
import os
import warnings
from typing import Any

import torch

from .. import _native
from .tested import warn_if_untested

_SCALAR_TYPES = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
    torch.float64: 7, torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15,
}
_WORD, _IMPL_SIZE, _INLINE_DIMS = 8, 248, 5
#: Kinds of devices whose dtype under autocast each snapshot of torch's state has.
AUTOCAST_DEVICES = ("cpu", "cuda", "xpu", "mps")
_done = False
calibrated = False


def ensure_calibrated() -> None:
    """Calibrate the native core at the first capture."""
    global _done, calibrated
    if _done:
        return
    _done = True
    warn_if_untested()
    _native.set_abc_token(_abc_token())
    _make_symbols_global()
    wanted = os.environ.get("FRAMEGRAFT_NO_CALIBRATION") != "1"
    state_ok = wanted and _state_functions_work()
    _native.set_fallbacks(slow_spec, None if state_ok else slow_state)
    if not wanted:
        return
    with torch.inference_mode(False), torch.enable_grad(), torch._C.DisableTorchFunction():  # whatever the default device
        offsets = _find()
        if offsets is not None:
            _native.calibrate(torch.Tensor, *offsets)
            if _verified():
                calibrated = True
                return
    _native.calibrate(torch.Tensor, *([0] * 10))
    warnings.warn("framegraft: the layout of this torch's tensors is not known; guards read Python attributes", stacklevel=2)


def tensor_spec(tensor: torch.Tensor, free: tuple[bool, ...] | None = None) -> Any:
    """What a guard compares of ``tensor``: type, dispatch keys, dtype, device, requires_grad, sizes and strides.

    ``free`` tells for each size, then for each stride, whether it may be anything (None: nothing may).
    """
    ndim = tensor.dim()
    sizes: list[Any] = list(tensor.shape)
    strides: list[Any] = list(tensor.stride())
    if free is not None:
        sizes = [None if f else n for f, n in zip(free[:ndim], sizes, strict=True)]
        strides = [None if f else n for f, n in zip(free[ndim:], strides, strict=True)]
    device = None if tensor.device.type == "cpu" else str(tensor.device)
    text = (
        f"{type(tensor).__name__}, {torch._C._dispatch_keys(tensor)}, {tensor.dtype}, device={device}, "
        f"requires_grad={tensor.requires_grad}, size={sizes}, stride={strides}"
    )
    return _native.new_tensor_spec(tensor, text) if free is None else _native.new_tensor_spec(tensor, text, free)


def slow_spec(t: torch.Tensor, free: tuple[bool, ...] | None = None) -> tuple:
    with torch._C.DisableTorchFunctionSubclass():  # no code of the tensor's class is to see this
        extents: tuple = (*t.shape, *t.stride())
        if free is not None:
            extents = tuple(None if f else n for f, n in zip(free, extents, strict=False))
        return (torch._C._dispatch_keys(t).raw_repr(), t.dtype, t.device, t.requires_grad, t.dim(), extents)


def slow_state() -> tuple:
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(),
        torch._C._is_torch_function_enabled(), torch._C._len_torch_function_stack(), *map(torch.get_autocast_dtype, AUTOCAST_DEVICES),
        torch.is_autocast_cache_enabled(), torch._C._dispatch_tls_local_include_set().raw_repr(),
        torch._C._dispatch_tls_local_exclude_set().raw_repr(),
    )


def _abc_token() -> int:
    """Where CPython's ``_abc`` counts the ABC cache token (``abc.get_cache_token()``), 0 where that is not certain."""
    if os.environ.get("FRAMEGRAFT_NO_CALIBRATION") == "1":
        return 0
    of = ctypes.pythonapi.PyModule_GetState
    of.restype, of.argtypes = ctypes.c_void_p, [ctypes.py_object]
    state = of(importlib.import_module("_abc"))

    def places() -> set[int]:
        return {state + o for o in (0, _WORD) if _read(ctypes.c_uint64, state + o) == abc.get_cache_token()}

    class Probe(abc.ABC): ...  # noqa: B024

    before = places() if state else set()
    Probe.register(int)  # counts it up
    found = before & places()
    return found.pop() if len(found) == 1 else 0


def _make_symbols_global() -> None:
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    for name in ("libc10.so", "libtorch_cpu.so", "libtorch_python.so"):
        try:
            ctypes.CDLL(os.path.join(folder, name), mode=ctypes.RTLD_GLOBAL | os.RTLD_NOLOAD)
        except OSError:
            return


def _state_functions_work() -> bool:
    """Whether the native snapshot sees each switch that is thrown."""
    try:
        base = _native.global_state()
    except RuntimeError:
        return False
    _native_diff = base.diff
    grad = torch.is_grad_enabled()
    torch._C._set_grad_enabled(not grad)
    try:
        saw_grad = "grad" in _native_diff(_native.global_state())
    finally:
        torch._C._set_grad_enabled(grad)
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if dtype != torch.float64 else torch.float32)
    try:
        saw_dtype = "default_dtype" in _native_diff(_native.global_state())
    finally:
        torch.set_default_dtype(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        saw_autocast = bool(_native_diff(_native.global_state()))
    for device in AUTOCAST_DEVICES:
        dtype = torch.get_autocast_dtype(device)
        torch.set_autocast_dtype(device, torch.float32)
        saw_autocast = saw_autocast and (dtype is torch.float32 or _native_diff(_native.global_state()) == ["autocast_dtype"])
        torch.set_autocast_dtype(device, dtype)
    with torch._C.DisableTorchFunctionSubclass():
        saw_function = "tf_state" in _native_diff(_native.global_state())
    return saw_grad and saw_dtype and saw_autocast and saw_function and not _native_diff(_native.global_state())


def _read(kind: Any, address: int) -> Any:
    return kind.from_address(address).value


def _only(found: list[int]) -> int:
    if len(found) != 1:
        raise LookupError(found)
    return found[0]


def _find() -> tuple[int, ...] | None:
    try:
        return _offsets()
    except LookupError:
        return None


# Functions of torch, no operators: a program may have put methods of its own on torch.Tensor by now.
def _offsets() -> tuple[int, ...]:
    probe = torch.empty(2, 3)
    cdata = _only([o for o in range(16, 64, _WORD) if _read(ctypes.c_uint64, id(probe) + o) == probe._cdata])
    shapes = ((), (7,), (2, 3), (4, 5, 6), (2, 3, 4, 5), (3, 1, 2, 2, 5))
    probes = [torch.empty(s, dtype=d) for s in shapes for d in _SCALAR_TYPES]
    probes += [torch.empty(3, 11, device="meta", dtype=d) for d in _SCALAR_TYPES]
    probes += [torch.empty(5, 9).t(), torch.empty(6, 7, 8).as_strided((6, 4, 8), (56, 16, 1)), torch.empty(13).expand(4, 13)]

    def where(kind: Any, value: Any, step: int = _WORD) -> list[int]:
        return [o for o in range(0, _IMPL_SIZE, step) if all(_read(kind, p._cdata + o) == value(p) for p in probes)]

    def words(address: int, count: int) -> list[int]:
        return list((ctypes.c_int64 * count).from_address(address)) if count else []

    keys = _only(where(ctypes.c_uint64, lambda p: torch._C._dispatch_keys(p).raw_repr()))
    dtype = _only(where(ctypes.c_uint16, lambda p: _SCALAR_TYPES[p.dtype], 2))
    ndim = _only([
        o for o in where(ctypes.c_uint64, lambda p: p.dim())
        if all(words(p._cdata + o + 8, p.dim()) == list(p.shape)
               and words(p._cdata + o + 8 + 8 * _INLINE_DIMS, p.dim()) == list(p.stride()) for p in probes)
    ])
    device = _only([
        o for o in range(_IMPL_SIZE)
        if all(_read(ctypes.c_int8, p._cdata + o) == (0 if p.device.type == "cpu" else 14)
               and _read(ctypes.c_int8, p._cdata + o + 1) == -1 for p in probes)
    ])
    # Many, made in turns: what lies behind a tensor in memory must not look like a part of it.
    mixed = [torch.empty(2, 3) for _ in range(24)]
    leaves, plain = [x.requires_grad_() for x in mixed[::3]], mixed[1::3] + mixed[2::3]
    plain += [x.detach() for x in leaves]
    with_meta = leaves + [torch.mul(x, 2) for x in leaves]
    meta = _only([
        o for o in range(0, _IMPL_SIZE, _WORD)
        if all(_read(ctypes.c_uint64, x._cdata + o) == 0 for x in plain)
        and all(_read(ctypes.c_uint64, x._cdata + o) != 0 for x in with_meta)
    ])
    metas = [_read(ctypes.c_uint64, x._cdata + meta) for x in leaves]

    def flags(offset: int) -> list[int]:
        """The bytes of a word that are 1 where a gradient is wanted, else 0."""
        found = []
        for wanted in (True, False, True):
            for x in leaves:
                x.requires_grad_(wanted)
            found.append([(ctypes.c_uint8 * _WORD).from_address(m + offset)[:] for m in metas])
        return [offset + i for i in range(_WORD) if all([a[i], b[i], c[i]] == [1, 0, 1] for a, b, c in zip(*found, strict=True))]

    # Word by word, and no further than to the flag: how large the record is nobody tells.
    flag = _only(next(filter(None, map(flags, range(0, 256, _WORD))), []))
    results = [torch.mul(x, 2) for x in leaves]
    inner = [_read(ctypes.c_uint64, x._cdata + meta) for x in results]
    grad_fn = [
        o for o in range(0, flag, _WORD)
        if all(_read(ctypes.c_uint64, m + o) > 1 << 20 for m in inner) and all(_read(ctypes.c_uint64, m + o) == 0 for m in metas)
    ]
    if not grad_fn:
        raise LookupError
    views = [torch.select(x, 0, 0) for x in plain]
    of_views = [_read(ctypes.c_uint64, x._cdata + meta) for x in views]
    plain_meta = _class_word(metas + inner, of_views)
    return (cdata, keys, dtype, device, ndim, meta, flag, grad_fn[0], _INLINE_DIMS, plain_meta)


def _class_word(records: list[int], of_views: list[int]) -> int:
    """The first word, which tells the class, of autograd records that are no view's; 0 where that is not certain."""
    if not all(of_views):
        return 0
    found, others = ({_read(ctypes.c_uint64, m) for m in some} for some in (records, of_views))
    return found.pop() if len(found) == 1 and not found & others else 0


def _verified() -> bool:
    """Fresh tensors of all kinds, read both ways."""
    made: list[torch.Tensor] = []
    for index, dtype in enumerate(_SCALAR_TYPES):
        for dims in range(8):
            t = torch.empty([1 + (index + d) % 3 for d in range(dims)], dtype=dtype)
            made.append(t.transpose(0, -1) if dims > 1 else t)
            if dtype.is_floating_point:
                leaf = torch.empty(t.shape, dtype=dtype, requires_grad=True)
                made += [leaf, torch.mul(leaf, 2), leaf.detach(), torch.nn.Parameter(leaf.detach(), requires_grad=dims % 2 == 0)]
    for t in made:
        keys, dtype, _device, grad, sizes, strides = _native.tensor_info(t)
        facts = (torch._C._dispatch_keys(t).raw_repr(), _SCALAR_TYPES[t.dtype], t.requires_grad, tuple(t.shape), t.stride())
        if (keys, dtype, grad, sizes, strides) != facts:
            return False
    return True
