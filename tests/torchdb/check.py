"""Runs one case eager and captured, and says what differs."""

import copy
import dataclasses
import hashlib
import io
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import torch

import framegraft
from tests.lang.snapshot import Snapshot, first_difference, global_state

CALLS = 2


@dataclasses.dataclass
class Case:
    """A program and how to make its inputs.

    ``make(wrap)`` gives (function, arguments, what else to look at after the calls), with ``wrap`` around what is to be
    captured, and nothing shared between two of its results but what neither changes. ``gradients``: a gradient is sent
    through the results. ``metadata_only``: the values are not defined (``torch.empty``).
    """

    name: str
    make: Callable[[Callable], tuple[Callable, tuple, Any]]
    gradients: bool = False
    metadata_only: bool = False


@dataclasses.dataclass
class Verdict:
    """``kind`` is same, differs, internal error, or broken input (eager itself is not repeatable)."""

    name: str
    kind: str
    graphs: int = 0
    reasons: tuple[str, ...] = ()
    raised: str = ""
    detail: str = ""
    wrong_fakes: tuple[str, ...] = ()


class Facts(Snapshot):
    """As the language tests compare, and what the autograd engine and views of it know."""

    def __init__(self, values: bool = True) -> None:
        super().__init__()
        self.values = values

    def tensor(self, t: torch.Tensor) -> tuple:
        strided = t.layout == torch.strided and not t.is_nested
        storage: Any = "none"
        if strided and t.device.type != "meta":
            storage = self.storages.setdefault(t.untyped_storage()._cdata, len(self.storages))
        shape: Any = "nested" if t.is_nested else tuple(t.shape)
        place = (tuple(t.stride()), t.storage_offset(), storage) if strided else (str(t.layout),)
        base = self.seen.get(id(t._base), "other") if t._is_view() else None
        version = None if t.is_inference() else t._version
        facts = (str(t.dtype), shape, place, str(t.device), t.requires_grad, t.is_leaf, type(t.grad_fn).__name__.rstrip("0123456789"),
                 t.is_conj(), t.is_neg(), t.is_inference(), base, version, t.output_nr)
        grad = self.walk(t.grad) if t.is_leaf and t.requires_grad else None
        extra = tuple((k, self.walk(v)) for k, v in t.__dict__.items())
        return (facts, values_of(t) if self.values else "", grad, extra)


def values_of(t: torch.Tensor) -> Any:
    """The values of a tensor, bit for bit; any nan is as good as any other."""
    with torch.no_grad():
        if t.device.type == "meta":
            return "meta"
        if t.is_nested:
            return tuple(values_of(part) for part in t.unbind())
        plain = t.detach().as_subclass(torch.Tensor)
        if plain.is_quantized:
            return values_of(plain.int_repr()), repr(plain)
        if plain.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc, torch.sparse_coo):
            plain = plain.to_dense()
        plain = plain.resolve_conj().resolve_neg().contiguous()
        plain = torch.view_as_real(plain) if plain.is_complex() else plain
        if plain.is_floating_point() and plain.element_size() > 1:
            plain = torch.where(plain.isnan(), torch.full_like(plain, torch.nan), plain)
        data = plain.reshape(-1).view(torch.uint8).numpy().tobytes()
        return (plain.reshape(-1).tolist() if plain.numel() <= 8 else "", hashlib.md5(data).hexdigest())


class Counter:
    """A backend that runs each graph node by node and compares the facts of each result with those of its fake twin."""

    def __init__(self, checks_fakes: bool) -> None:
        self.graphs = 0
        self.wrong: list[str] = []
        self.checks_fakes = checks_fakes

    def __call__(self, gm: torch.fx.GraphModule, inputs: list) -> Callable:
        self.graphs += 1
        return Checked(gm, self.wrong).run_boxed if self.checks_fakes else gm.forward


class Checked(torch.fx.Interpreter):
    def __init__(self, gm: torch.fx.GraphModule, wrong: list[str]) -> None:
        super().__init__(gm)
        self.wrong = wrong
        self.extra_traceback = False  # what an operation raises is compared, too

    def run_boxed(self, *args: Any) -> Any:
        return self.run(*args)

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        fake = n.meta.get("example_value")
        if n.op in ("call_function", "call_method") and isinstance(result, torch.Tensor) and isinstance(fake, torch.Tensor):
            mine, real = facts_of(fake), facts_of(result)
            if mine != _known(real, mine):
                self.wrong.append(f"{getattr(n.target, '__name__', n.target)}: fake {mine}, real {real}")
        return result


def facts_of(t: torch.Tensor) -> tuple:
    if t.layout != torch.strided or t.is_nested:
        return str(t.dtype), str(t.layout)
    numbers = tuple(n if type(n) is int else "?" for n in (*t.shape, *t.stride(), t.storage_offset()))
    return str(t.dtype), numbers, str(t.device), t.is_conj(), t.is_neg()


def _known(facts: tuple, pattern: tuple) -> tuple:
    """The facts without the numbers that are symbols in ``pattern``."""
    if len(facts) != len(pattern) or len(facts) < 3 or len(facts[1]) != len(pattern[1]):
        return facts
    return (facts[0], tuple("?" if p == "?" else n for n, p in zip(facts[1], pattern[1], strict=True)), *facts[2:])


def copied(args: Any) -> Any:
    """A deep copy; tensors that share memory do so in the copy."""
    return copy.deepcopy(args)


def send_gradients(results: list) -> str:
    """Sends a gradient of ones through every result that takes one."""
    ends = [t for t in torch.utils._pytree.tree_leaves(results) if isinstance(t, torch.Tensor) and t.requires_grad and t.grad_fn is not None]
    try:
        torch.autograd.backward(ends, [torch.ones_like(t) for t in ends])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def observe(case: Case, wrap: Callable[[Callable], Callable], values: bool) -> tuple[Any, list]:
    """What can be seen of ``CALLS`` calls, and how they ended."""
    torch.manual_seed(0)
    call, args, watched = case.make(wrap)
    given = [args, *(copied(args) for _ in range(CALLS - 1))]
    ends = []
    for one in given:
        try:
            ends.append(("returned", call(*one)))
        except Exception as error:
            ends.append(("raised", type(error).__name__ if case.metadata_only else (type(error).__name__, str(error))))
    seen = [Facts(values)((given, ends, watched)), global_state()]
    if case.gradients:
        seen.append(send_gradients([e[1] for e in ends if e[0] == "returned"]))
        seen.append(Facts(values)((given, ends, watched)))
    return tuple(seen), ends


def check(case: Case, dynamic: bool | None = None, checks_fakes: bool = True) -> Verdict:
    """The verdict on a case. Nothing of it stays behind."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return _check(case, dynamic, checks_fakes)
        finally:
            framegraft.reset()
            torch.set_grad_enabled(True)


def _check(case: Case, dynamic: bool | None, checks_fakes: bool) -> Verdict:
    values = not case.metadata_only
    try:
        expected, ends = observe(case, lambda fn: fn, values)
    except Exception as error:
        return Verdict(case.name, "broken input", detail=f"{type(error).__name__}: {error}")
    framegraft.reset()
    counter = Counter(checks_fakes)
    with framegraft.config.patch(raise_internal_errors=True):
        got, got_ends = observe(case, lambda fn: framegraft.compile(fn, backend=counter, dynamic=dynamic), values)
    raised = next((str(e[1])[:200] for e in ends if e[0] == "raised"), "")
    reasons = tuple(sorted({str(getattr(r, "reason", r)) for r in framegraft.break_reasons()}))
    verdict = Verdict(case.name, "same", counter.graphs, reasons, raised, "", tuple(counter.wrong))
    difference = first_difference(expected, got)
    if any(e[0] == "raised" and "InternalError" in e[1] for e in got_ends):
        verdict.kind, verdict.detail = "internal error", str(got_ends)[:1500]
    elif difference is not None:
        again, _ = observe(case, lambda fn: fn, values)
        verdict.kind = "differs" if first_difference(expected, again) is None else "broken input"
        verdict.detail = difference
    return verdict


sys.setrecursionlimit(max(sys.getrecursionlimit(), 3000))
