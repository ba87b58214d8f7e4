"""copy.copy and copy.deepcopy of tensors and of what holds them; dataclasses' functions that make deep copies."""

import collections
import copy
import dataclasses
from typing import Any

import torch

import framegraft

from .differential import differential


def one():
    return (torch.arange(3.0) + 1,)


@differential(one, graphs=1)
def test_tensor(x):
    made = x * 2
    copies = copy.deepcopy(x), copy.deepcopy(made), copy.copy(x), copy.copy(made)
    x.add_(1)
    made.mul_(3)
    copies[0].sub_(1)
    return x, made, copies


@differential(one, graphs=1)
def test_containers(x):
    made = x + 1
    items = [made, made, {"a": made, "b": (made, 1)}]
    items.append(items)
    copied = copy.deepcopy(items)
    copied[0].mul_(2)
    shallow = copy.copy(items[2])
    shallow["c"] = x
    return copied[:3], copied[3] is copied, items[:3], shallow


@differential(one, graphs=1)
def test_mappings(x):
    plain = collections.defaultdict(list)
    plain["a"].append(x * 1)
    ordered = collections.OrderedDict(b=plain, a=1)
    copies = copy.copy(plain), copy.deepcopy(plain), copy.copy(ordered), copy.deepcopy(ordered)
    copies[0]["new"].append(1)
    copies[1]["a"].append(2)
    return plain, ordered, copies, copies[2]["b"] is plain


@differential(lambda: (torch.ones(2, 3), torch.ones(2, 3)))
def test_shapes(x, y):
    return copy.deepcopy(x.t()), copy.deepcopy(x[0]), copy.deepcopy(x.expand(2, 2, 3)), copy.deepcopy([x, x[1], y])


@differential(lambda: (torch.ones(3).requires_grad_(), torch.ones(3)))
def test_gradients(x, y):
    a = copy.deepcopy(x)
    try:
        b = copy.deepcopy(x * 2)
    except RuntimeError as error:
        b = str(error)[:30]
    with torch.no_grad():
        c = copy.deepcopy(x), copy.copy(y)
    return a, b, c, copy.deepcopy(y)


@differential(build=True)
def test_views_share():
    base = torch.arange(6.0)

    def fn(x):
        one, other = copy.deepcopy([base[:3], base[3:]])
        one.add_(x)
        whole = copy.deepcopy(base)
        return one, other, whole, copy.deepcopy(base[2:5]).storage_offset()

    return fn


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __deepcopy__(self, memo):
        return Pair(copy.deepcopy(self.a, memo), self.b)


@differential(one, graphs=1)
def test_own_deepcopy(x):
    made = x + 0
    pair = Pair(made, made)
    copied = copy.deepcopy({"pair": pair, "again": pair, "t": made})
    return copied["pair"].a is copied["t"], copied["pair"].b is made, copied["again"] is copied["pair"], copied["t"]


@dataclasses.dataclass
class Record:
    a: Any
    b: int = 3
    c: list = dataclasses.field(default_factory=list)


@differential(one, graphs=1)
def test_dataclasses(x):
    record = Record(x * 2, 2, [x + 1])
    as_dict = dataclasses.asdict(record)
    as_dict["a"].add_(1)
    replaced = dataclasses.replace(record, b=5)
    return as_dict, dataclasses.astuple(record), replaced, replaced.a is record.a, record


def test_attributes_and_parts_are_seen():
    compiled = framegraft.compile(lambda t: copy.deepcopy(t), backend="eager")
    x = torch.ones(3)
    assert torch.equal(compiled(x), x)
    x.note = "kept"
    assert compiled(x).note == "kept"
    part = torch.ones(2, 3)[0]
    assert compiled(part).untyped_storage().nbytes() == 24
    x = torch.ones(3)
    x.grad = torch.ones(3)
    assert torch.equal(compiled(x).grad, x.grad)
