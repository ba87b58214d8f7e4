"""Python reference of the native core: the same interface, used where the extension is not built."""

from __future__ import annotations

import functools
import threading
import types
import weakref
from typing import Any

import torch


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


MISSING = _Missing()
_EXTRA: dict[int, Any] = {}


class _Extra:
    def __init__(self, code: types.CodeType) -> None:
        self.code = code
        self.entries: list[Entry] = []
        self.skip = False


def _extra(code: types.CodeType) -> _Extra:
    found = _EXTRA.get(id(code))
    if found is None:
        found = _EXTRA[id(code)] = _Extra(code)
    return found


class GlobalState:
    def __init__(self) -> None:
        self.values = {
            "grad_mode": torch.is_grad_enabled(),
            "inference_mode": torch.is_inference_mode_enabled(),
            "default_dtype": torch.get_default_dtype(),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
            "torch_function": torch._C._is_torch_function_enabled(),
            "torch_function_modes": torch._C._len_torch_function_stack(),
            "dispatch_modes": torch._C._len_torch_dispatch_stack(),
            "autocast_cpu": torch.is_autocast_enabled("cpu"),
            "autocast_dtype": torch.get_autocast_dtype("cpu"),
            "autocast_cache": torch.is_autocast_cache_enabled(),
            "tls_include": torch._C._dispatch_tls_local_include_set().raw_repr(),
            "tls_exclude": torch._C._dispatch_tls_local_exclude_set().raw_repr(),
            "functorch": torch._C._functorch.maybe_current_level() is not None,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalState) and self.values == other.values

    def __hash__(self) -> int:
        return 0

    def diff(self, other: GlobalState) -> list[str]:
        return [k for k, v in self.values.items() if other.values[k] != v]


def global_state() -> GlobalState:
    return GlobalState()


class TensorSpec:
    def __init__(self, t: torch.Tensor, dynamic_dims: tuple = ()) -> None:
        self.dynamic = dynamic_dims
        self.cls = type(t)
        self.facts = self._facts(t)

    def _facts(self, t: torch.Tensor) -> tuple:
        size = tuple(-1 if i in self.dynamic else s for i, s in enumerate(t.shape))
        stride = () if self.dynamic else t.stride()
        return (torch._C._dispatch_keys(t).raw_repr(), t.dtype, t.device, t.requires_grad, size, stride)

    def matches(self, t: Any) -> bool:
        return type(t) is self.cls and self._facts(t) == self.facts

    def __repr__(self) -> str:
        _, dtype, device, grad, size, stride = self.facts
        return f"{self.cls.__name__}, {dtype}, device={device}, requires_grad={grad}, size={list(size)}, stride={list(stride)}"


def tensor_spec(t: torch.Tensor, dynamic_dims: tuple = ()) -> TensorSpec:
    return TensorSpec(t, dynamic_dims)


def _hold(obj: Any) -> Any:
    try:
        return weakref.ref(obj)
    except TypeError:
        return lambda: obj


def _float_key(v: Any) -> Any:
    return (v.hex() if v == v else "nan") if type(v) is float else repr(v) if type(v) is complex else v


_FIELDS = {"FCODE": "__code__", "FDEFAULTS": "__defaults__", "FKWDEFAULTS": "__kwdefaults__", "FCLOSURE": "__closure__",
           "FGLOBALS": "__globals__", "FDICT": "__dict__", "CELLVAL": "cell_contents", "MFUNC": "__func__", "MSELF": "__self__",
           "GRAD": "grad"}


class GuardProgram:
    def __init__(self, nodes: list, owner: Any = None) -> None:
        self.nodes = []
        for parent, access, arg, checks in nodes:
            if access == "CONST":
                arg = _hold(arg)
            kept = []
            for check, payload, gid in checks:
                if check == "ID":
                    payload = _hold(payload)
                elif check == "TYPEVER":
                    payload = tuple((n, _hold(v)) for n, v in payload)
                kept.append((check, payload, gid))
            self.nodes.append((parent, access, arg, kept))
        self.dead = False

    def __len__(self) -> int:
        return sum(len(n[3]) for n in self.nodes)

    def check(self, args: tuple, fn: Any) -> bool:
        return self.explain(args, fn) is None

    def explain(self, args: tuple, fn: Any) -> Any:
        values: list[Any] = []
        for parent, access, arg, checks in self.nodes:
            base = values[parent] if parent >= 0 else None
            if access == "CONST":
                value = arg()
                if value is None and not isinstance(arg, types.FunctionType):
                    self.dead = True
                    return (-2, MISSING)
            else:
                value = MISSING if parent >= 0 and base is MISSING else _access(access, arg, base, args, fn)
            values.append(value)
            for check, payload, gid in checks:
                if not _check(check, payload, value, values, args, fn):
                    return (gid, value)
        return None


def _access(access: str, arg: Any, base: Any, args: tuple, fn: Any) -> Any:
    try:
        if access == "ARG":
            return args[arg]
        if access == "GLOBALS":
            return fn.__globals__
        if access == "BUILTINS":
            b = fn.__globals__["__builtins__"]
            return b.__dict__ if isinstance(b, types.ModuleType) else b
        if access == "CELL":
            return fn.__closure__[arg].cell_contents
        if access == "CELLOBJ":
            return fn.__closure__[arg]
        if access == "FN":
            return fn
        if access == "DICT":
            return object.__getattribute__(base, "__dict__")
        if access == "KEY":
            return dict.__getitem__(base, arg)
        if access == "ITEM":
            return (list if isinstance(base, list) else tuple).__getitem__(base, arg)
        if access == "TYPE":
            return type(base)
        if access == "TYPEATTR":
            for c in base.__mro__:
                if arg in c.__dict__:
                    return c.__dict__[arg]
            return MISSING
        if access == "ATTR":
            return getattr(base, arg)
        if access == "MAPKEYAT":
            return list(dict.keys(base))[arg]
        if access == "PYCALL":
            return arg(base)
        if access in ("STATE", "NONE"):
            return None
        return getattr(base, _FIELDS[access])
    except Exception:
        return MISSING


def _check(check: str, payload: Any, value: Any, values: list, args: tuple, fn: Any) -> bool:
    try:
        return _holds(check, payload, value, values, args, fn)
    except (TypeError, AttributeError):
        return False


def _holds(check: str, payload: Any, value: Any, values: list, args: tuple, fn: Any) -> bool:
    if check == "ALIAS":
        return values[payload[0]] is values[payload[1]]
    if check == "NOALIAS":
        seen = [id(values[i]) for i in payload]
        return len(set(seen)) == len(seen)
    if check == "STATE":
        return payload == global_state()
    if check == "ABSENT":
        return value is MISSING
    if value is MISSING:
        return False
    if check == "PRESENT":
        return True
    if check == "ID":
        return value is payload()
    if check == "TYPE":
        return type(value) is payload
    if check == "EQ":
        return type(value) is type(payload) and bool(_float_key(value) == _float_key(payload))
    if check == "LEN":
        return (len(value) if not isinstance(value, dict) else dict.__len__(value)) == payload
    if check == "KEYS":
        mine = list(dict.keys(value))
        return len(mine) == len(payload) and all(a is b or (type(a) is type(b) and a == b) for a, b in zip(mine, payload, strict=True))
    if check == "HASKEY":
        return dict.__contains__(value, payload)
    if check == "NOKEY":
        return not dict.__contains__(value, payload)
    if check == "TRUTH":
        return bool(value) is payload
    if check == "TYPEVER":
        return all(_access("TYPEATTR", n, value, args, fn) is held() for n, held in payload)
    if check == "TENSOR":
        return payload.matches(value)
    if check == "PY":
        try:
            return bool(payload(value))
        except Exception:
            return False
    if check == "RANGE":
        return type(value) is int and payload[0] <= value <= payload[1]
    raise ValueError(check)


class Entry:
    def __init__(self, program: Any, code: types.CodeType, scope: dict, ctx: Any, info: Any = None) -> None:
        self.program = program
        self.code = code
        self.globals = scope
        self.ctx = ctx
        self.info = info
        self.hits = 0
        self._fn: Any = None
        _extra(code).skip = True

    @property
    def alive(self) -> bool:
        return not self.program.dead

    def run(self, fn: Any, args: tuple) -> Any:
        made = self._fn
        if made is None or made.__closure__ is not fn.__closure__:
            made = types.FunctionType(self.code, self.globals, fn.__name__, None, fn.__closure__ if self.code.co_freevars else None)
            self._fn = made
        return made(*args)


def cache_entries(code: types.CodeType) -> list:
    return list(_extra(code).entries)


def add_entry(code: types.CodeType, entry: Entry) -> None:
    _extra(code).entries.insert(0, entry)


def remove_entry(code: types.CodeType, entry: Entry) -> None:
    _extra(code).entries.remove(entry)


def clear_cache(code: types.CodeType) -> None:
    _EXTRA.pop(id(code), None)


def set_skip(code: types.CodeType, ctx: Any, value: bool) -> None:
    _extra(code).skip = value


def is_skipped(code: types.CodeType) -> bool:
    return _extra(code).skip


class _Thread(threading.local):
    state: tuple = (0, None, None)


_thread = _Thread()


def set_mode(mode: int, ctx: Any, miss: Any) -> tuple:
    old = _thread.state
    _thread.state = (mode, ctx, miss)
    return old


def get_mode() -> tuple:
    return _thread.state


def _flatten(fn: Any, args: tuple, kwargs: dict) -> tuple:
    code = fn.__code__
    import inspect

    bound = inspect.Signature.from_callable(fn, follow_wrapped=False).bind(*args, **kwargs)
    bound.apply_defaults()
    n = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return tuple(bound.arguments[v] for v in code.co_varnames[:n])


class CompiledFunction:
    def __init__(self, fn: Any, ctx: Any, miss: Any) -> None:
        functools.update_wrapper(self, fn)
        self.ctx = ctx
        self.miss = miss

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        fn = self.__wrapped__
        mode = _thread.state[0]
        code = fn.__code__
        if mode == 2 or is_skipped(code):
            return fn(*args, **kwargs)
        try:
            flat = _flatten(fn, args, kwargs)
        except TypeError:
            return fn(*args, **kwargs)
        extra = _extra(code)
        for entry in extra.entries:
            if entry.ctx is self.ctx and entry.globals is fn.__globals__ and entry.program.check(flat, fn):
                extra.entries.remove(entry)
                extra.entries.insert(0, entry)
                entry.hits += 1
                return entry.run(fn, flat)
        if mode == 3:
            return fn(*args, **kwargs)
        entry = self.miss(self, flat)
        return fn(*args, **kwargs) if entry is None else entry.run(fn, flat)

    def __get__(self, obj: Any, cls: Any = None) -> Any:
        return self if obj is None else types.MethodType(self, obj)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__wrapped__"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("__code__", "__defaults__", "__kwdefaults__"):
            setattr(self.__wrapped__, name, value)
        else:
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<framegraft compiled {self.__wrapped__.__qualname__}>"

    def __reduce__(self) -> str:
        return self.__qualname__
