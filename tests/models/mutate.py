"""Models changed between two calls, in ways that programs change them: what the compiled model gives is compared with eager mode.

``python -m tests.models.mutate [SEED ...]`` does this with every model of ``test_plain_torch.py`` for each seed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn as nn

import framegraft

from .check import plain

_OF_MODULE = frozenset(vars(nn.Module()))


class Scaled(nn.Module):
    """A module in the place of another, as adapters are."""

    def __init__(self, inner: nn.Module, factor: float) -> None:
        super().__init__()
        self.inner, self.factor = inner, factor

    def forward(self, *args, **kwargs):
        return scaled(self.inner(*args, **kwargs), self.factor)


def scaled(value: Any, factor: float) -> Any:
    return value * factor if isinstance(value, torch.Tensor) and value.is_floating_point() else value


class Changes:
    """One model and what may be done to it. Each method without an underscore says what it did, or None where there was nothing."""

    def __init__(self, model: nn.Module, rng: random.Random) -> None:
        self._model, self._rng = model, rng
        self._classes: list[tuple[type, Any]] = []

    def _undo(self) -> None:
        for cls, forward in reversed(self._classes):
            cls.forward = forward  # type: ignore[attr-defined]

    def _step(self) -> str:
        names = [name for name in dir(self) if not name.startswith("_")]
        while True:
            name = self._rng.choice(names)
            done = getattr(self, name)()
            if done is not None:
                return f"{name}: {done}"

    def _modules(self) -> list[tuple[str, nn.Module]]:
        return [(name, m) for name, m in self._model.named_modules() if name]

    def _module(self) -> tuple[str, nn.Module] | None:
        found = self._modules()
        return self._rng.choice(found) if found else None

    def _put(self, name: str, module: nn.Module) -> None:
        parent, _, last = name.rpartition(".")
        setattr(self._model.get_submodule(parent), last, module)

    def _owned(self, kind: str) -> tuple[str, nn.Module, str] | None:
        """A parameter or buffer, by its module and name."""
        found = [(name, m, key) for name, m in self._model.named_modules() for key, v in getattr(m, kind).items()
                 if v is not None and v.is_floating_point()]
        return self._rng.choice(found) if found else None

    def _containers(self) -> tuple[str, Any] | None:
        found = [(name, m) for name, m in self._modules() if isinstance(m, (nn.ModuleList, nn.Sequential)) and len(m) > 1]
        return self._rng.choice(found) if found else None

    def number(self) -> str | None:
        found = [(name, m, key) for name, m in self._model.named_modules() for key, v in vars(m).items()
                 if type(v) in (int, float, bool) and key not in _OF_MODULE
                 and not isinstance(m, nn.RNNBase)]  # whose kernel reads beyond its weights: eager mode, too, crashes
        if not found:
            return None
        name, module, key = self._rng.choice(found)
        old = getattr(module, key)
        setattr(module, key, not old if type(old) is bool else old * 2 if type(old) is float else old + self._rng.choice((-1, 1)))
        return f"{name}.{key} from {old} to {getattr(module, key)}"

    def hook(self) -> str | None:
        if (found := self._module()) is None:
            return None
        factor = self._rng.choice((0.5, 1.5))
        if self._rng.random() < 0.5:
            found[1].register_forward_hook(lambda module, args, out: scaled(out, factor))
        else:
            found[1].register_forward_pre_hook(lambda module, args: tuple(scaled(a, factor) for a in args))
        return found[0]

    def parameter(self) -> str | None:
        if (found := self._owned("_parameters")) is None:
            return None
        name, module, key = found
        old = getattr(module, key).detach()
        how = self._rng.choice(("new", "data", "in place", "none", "strides", "gradient"))
        if how == "new":
            setattr(module, key, nn.Parameter(old * 1.5 + 0.1))
        elif how == "data":
            getattr(module, key).data = old.clone() + 0.05
        elif how == "in place":
            old.mul_(0.7)
        elif how == "none" and key == "bias":
            setattr(module, key, None)
        elif how == "strides" and old.dim() == 2:
            setattr(module, key, nn.Parameter(old.t().contiguous().t()))
        elif how == "gradient":
            getattr(module, key).requires_grad_(not getattr(module, key).requires_grad)
        else:
            return None
        return f"{how} {name}.{key}"

    def shared(self) -> str | None:
        one, other = self._owned("_parameters"), self._owned("_parameters")
        if one is None or other is None or getattr(one[1], one[2]).shape != getattr(other[1], other[2]).shape:
            return None
        setattr(one[1], one[2], getattr(other[1], other[2]))
        return f"{one[0]}.{one[2]} is {other[0]}.{other[2]}"

    def buffer(self) -> str | None:
        if (found := self._owned("_buffers")) is None:
            return None
        name, module, key = found
        setattr(module, key, getattr(module, key) * 1.25 + 0.01)
        return f"{name}.{key}"

    def swapped(self) -> str | None:
        if (found := self._module()) is None:
            return None
        name, module = found
        alike = [(n, m) for n, m in self._modules() if type(m) is type(module) and not n.startswith(name) and not name.startswith(n)]
        if not alike:
            return None
        other, its = self._rng.choice(alike)
        self._put(name, its)
        self._put(other, module)
        return f"{name} and {other}"

    def replaced(self) -> str | None:
        found = [(name, m) for name, m in self._modules() if not list(m.children())]
        if not found:
            return None
        name, module = self._rng.choice(found)
        new = self._rng.choice((nn.Identity(), nn.Tanh(), Scaled(module, 0.5)))
        self._put(name, new)
        return f"{name} by {type(new).__name__}"

    def forward_of_one(self) -> str | None:
        if (found := self._module()) is None:
            return None
        inner: Any = found[1].forward
        found[1].forward = lambda *args, **kwargs: scaled(inner(*args, **kwargs), 1.5)  # type: ignore[method-assign]
        return found[0]

    def forward_of_class(self) -> str | None:
        if (found := self._module()) is None or not callable(getattr(type(found[1]), "forward", None)):
            return None
        cls: Any = type(found[1])
        inner = cls.forward
        self._classes.append((cls, inner))
        cls.forward = lambda self, *args, **kwargs: scaled(inner(self, *args, **kwargs), 0.5)
        return cls.__name__

    def mode(self) -> str | None:
        if (found := self._module()) is None:
            return None
        found[1].train(not found[1].training)
        return f"training of {found[0]}: {found[1].training}"

    def layers(self) -> str | None:
        if (found := self._containers()) is None:
            return None
        name, layers = found
        index = self._rng.randrange(len(layers))
        if self._rng.random() < 0.5:
            del layers[index]
            return f"no {name}[{index}]"
        layers.append(layers[index])
        return f"{name}[{index}] again"


def outcome(model: nn.Module, run: Callable[..., Any], given: Any, gradients: bool) -> Any:
    """What a call gives, or its error; with ``gradients`` those of the parameters, too."""
    torch.manual_seed(0)
    model.zero_grad()
    buffers = {name: b.clone() for name, b in model.named_buffers()}
    try:
        with torch.set_grad_enabled(gradients):
            result = plain(run(**given) if isinstance(given, dict) else run(*given))
            floats = [t for t in _tensors(result) if t.requires_grad]
            if floats:
                sum(t.float().square().sum() for t in floats).backward()  # type: ignore[union-attr]
        made = [p.grad for p in model.parameters()] if gradients else []
        return result, made, {name: b.clone() for name, b in model.named_buffers()}
    except Exception as error:  # whatever eager mode raises
        return f"{type(error).__name__}: {error}"
    finally:
        for name, b in model.named_buffers():  # of normalizations: each run begins with the same
            b.data.copy_(buffers[name])


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def review(make: Callable[[], nn.Module], inputs: Callable[[int], Any], seed: int, steps: int, backend: Any = "eager") -> str | None:
    """Change a model ``steps`` times and call it after each; what first differed from eager mode, and the changes that led there."""
    torch.manual_seed(seed)
    framegraft.reset()
    model = make().eval()
    rng = random.Random(seed)
    changes = Changes(model, rng)
    compiled = framegraft.compile(model, backend=backend)
    done: list[str] = []
    try:
        for _ in range(steps):
            given, gradients = inputs(rng.randrange(3)), rng.random() < 0.3
            expected = outcome(model, model, given, gradients)
            found = outcome(model, compiled, given, gradients)
            if isinstance(expected, str) or isinstance(found, str):
                if expected != found:
                    return f"{done}: {expected} in eager mode, {found}"
                return None  # the change broke the model; so it stays
            if not framegraft.testing.same(expected, found):
                return f"{done}: differs from eager mode{' with gradients' if gradients else ''}"
            done.append(changes._step())
    finally:
        changes._undo()
    return None


if __name__ == "__main__":
    from .test_plain_torch import MODELS

    for _seed in map(int, sys.argv[1:] or ["0"]):
        for _name, (_make, _inputs) in MODELS.items():
            _wrong = review(_make, _inputs, _seed, steps=40)
            if _wrong is not None:
                print(f"seed {_seed}, {_name}: {_wrong}")
