"""Objects whose class has something of its own under the name ``__dict__``."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import framegraft

LOG: list[str] = []


class Shown:
    """What it shows is not what its attributes are kept in."""

    def __init__(self) -> None:
        self.v = 1.5

    @property
    def __dict__(self) -> dict:  # type: ignore[override]
        LOG.append("asked")
        return {"v": 7.0}


class Slotted:
    __slots__ = ("v",)
    __dict__ = {"v": 7.0, "w": 3}  # noqa: RUF012 - a plain entry of a class without real dicts

    def __init__(self) -> None:
        self.v = 1.5


def read(d: Any, x: torch.Tensor) -> Any:
    return x + d.v


def store(d: Any, x: torch.Tensor) -> Any:
    d.v = d.v + 1
    return x + d.v


def ask(d: Any, x: torch.Tensor) -> Any:
    return [x + d.v, d.__dict__]


def ask_vars(d: Any, x: torch.Tensor) -> Any:
    return [x + d.v, vars(d)]


def new(d: Any, x: torch.Tensor) -> Any:
    made = type(d)()
    made.v += 2
    return [x + made.v, made]


def delete(d: Any, x: torch.Tensor) -> Any:
    del d.v
    return [x + 1, hasattr(d, "v"), getattr(d, "w", None)]


@pytest.mark.parametrize("fn", [read, store, ask, ask_vars, new, delete], ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("cls", [Shown, Slotted])
def test_own_dict(cls: type, fn: Any) -> None:
    def told(call: Any, value: float) -> Any:
        d: Any = cls()
        d.v = value
        LOG.clear()
        made = call(d, torch.ones(2))
        asked = len(LOG)
        shown = [item.tolist() if isinstance(item, torch.Tensor) else getattr(item, "v", item) for item in
                 (made if type(made) is list else [made])]
        return shown, asked, getattr(d, "v", None)

    compiled = framegraft.optimize("eager")(fn)
    for value in (1.5, 2.5, 1.5, 4.5):
        assert told(compiled, value) == told(fn, value)


class Named:
    """An instance finds these; of the class itself its metaclass tells them."""

    __name__ = [1, 2]  # noqa: RUF012 - as above
    __mro__ = {"a": 1}  # noqa: RUF012 - as above
    __bases__ = 2.5


def test_names_of_the_metaclass() -> None:
    def f(n: Any, x: torch.Tensor) -> list:
        return [x + n.__bases__, n.__name__, n.__mro__, type(n).__name__, type(n).__mro__, type(n).__bases__]

    got, expected = framegraft.optimize("eager")(f)(Named(), torch.ones(2)), f(Named(), torch.ones(2))
    assert got[0].equal(expected[0])
    assert got[1:] == expected[1:]


@pytest.mark.parametrize("name", ["__name__", "__mro__"])
def test_contents_of_what_a_metaclass_hides(name: str) -> None:
    def f(n: Any, x: torch.Tensor) -> torch.Tensor:
        return x * len(getattr(n, name))

    compiled = framegraft.optimize("eager")(f)
    held = getattr(Named(), name)
    for _ in range(3):
        assert compiled(Named(), torch.ones(2)).equal(f(Named(), torch.ones(2)))
        held.append(3) if type(held) is list else held.update({len(held): 1})
