"""Random trees of objects, random guard programs over them, random changes: the quick run agrees with the full one at each step."""

import collections
import random
import types

import pytest
import torch

from framegraft.native.calibrate import ensure_calibrated, tensor_spec

from .build import Other, Thing, frame, node, program

ensure_calibrated()
NAMES = "abcdefghijkl"
PAIR = (1, 2)


class Slotted:
    __slots__ = ("__dict__", "a", "b")


class Numbers(list):
    pass


def function(default):
    def made(x: default = default, *, y: default = default):
        return default

    return made


def leaf(pick):
    return pick.choice((lambda: pick.randrange(4), lambda: pick.choice("xyz"), lambda: 1.5, lambda: None, lambda: PAIR,
                        lambda: torch.ones(pick.randrange(1, 4)), lambda: torch.ones(2, requires_grad=pick.random() < 0.5)))()


def tree(pick, depth):
    if pick.random() < 0.3:  # much that hangs off one object
        values = [pick.choice(("xx", "yy", 1, 2.5, None)) for _ in NAMES]
        return pick.choice((list, tuple, lambda values: dict(zip(NAMES, values, strict=True))))(values)
    if depth == 0 or pick.random() < 0.15:
        return leaf(pick)
    values = [tree(pick, depth - 1) for _ in range(pick.choice((1, 2, 3, 12)))]
    named = dict(zip(NAMES, values, strict=False))
    slotted = Slotted()
    slotted.a = slotted.b = slotted.c = values[0]
    return pick.choice((Thing(**named), slotted, values, tuple(values), named, function(values[0]), collections.OrderedDict(named), Numbers(values)))


class Guards:
    """A random program that holds for what is there now."""

    def __init__(self, pick, roots):
        self.pick, self.nodes, self.met = pick, [], []
        for index, root in enumerate(roots):
            self.below(root, self.add("ARG", index, root, -1), 6)
        apart = {id(v): i for i, v in enumerate(self.met) if isinstance(v, (torch.Tensor, Thing, list, dict)) and pick.random() < 0.5}
        if len(apart) > 1:
            self.nodes.append(node("NONE", None, ("NOALIAS", list(apart.values()))))

    def checks(self, value):
        if isinstance(value, torch.Tensor):
            return [("TENSOR", tensor_spec(value))]
        likely = lambda share: self.pick.random() < share  # noqa: E731
        found = [("TYPE", type(value))] if likely(0.8) else []
        if value is None:
            return [*found, ("ID", None)]
        if type(value) in (int, str, float) or value is PAIR:
            return [*found, ("EQ", value)] if likely(0.8) else found
        if found and isinstance(value, (list, tuple, dict)) and likely(0.6):
            found.append(("LEN", len(value)))
        if found and isinstance(value, dict) and likely(0.5):
            found += [("KEYS", tuple(value)), ("NOKEY", "zz")]
        return found

    def add(self, access, key, value, parent, checks=None):
        self.nodes.append(node(access, key, *(self.checks(value) if checks is None else checks), parent=parent))
        self.met.append(value)
        return len(self.nodes) - 1

    def children(self, value, at):
        if isinstance(value, (Thing, Slotted)):
            fields = self.add("DICT", None, value.__dict__, at, [])
            yield from (("KEY", key, child, fields) for key, child in value.__dict__.items())
            if isinstance(value, Slotted):
                yield from (("ATTR", key, getattr(value, key), at) for key in ("a", "b"))
        elif isinstance(value, (list, tuple)):
            yield from (("ITEM", index, child, at) for index, child in enumerate(value))
        elif isinstance(value, dict):
            yield from (("KEY", key, child, at) for key, child in value.items())
        elif isinstance(value, types.FunctionType):
            yield "FDEFAULTS", None, value.__defaults__, at
            yield "FKWDEFAULTS", None, value.__kwdefaults__, at
            yield "FNOTES", None, value.__annotations__, at
            cell = value.__closure__[0]
            closure = self.add("FCLOSURE", None, value.__closure__, at, [("LEN", 1)])
            yield "CELLVAL", None, cell.cell_contents, self.add("ITEM", 0, cell, closure, [])

    def below(self, value, at, depth):
        for access, key, child, parent in list(self.children(value, at)) if depth else ():
            if self.pick.random() < 0.75:
                self.below(child, self.add(access, key, child, parent), depth - 1)


def changeable(value, found):
    if isinstance(value, (Thing, Slotted, list, dict, types.FunctionType, torch.Tensor)):
        found.append(value)
    parts = (value.__dict__.values() if isinstance(value, (Thing, Slotted)) else value.values() if isinstance(value, dict)
             else value if isinstance(value, (list, tuple)) else (*value.__defaults__, *value.__annotations__.values()) if isinstance(value, types.FunctionType) else ())
    for part in parts:
        changeable(part, found)
    return found


def copied(value):
    """As good as the same, but another object."""
    if isinstance(value, torch.Tensor):
        return torch.ones(value.shape, requires_grad=value.requires_grad)
    return type(value)(value) if type(value) in (list, dict, tuple) else Thing(**value.__dict__) if type(value) is Thing else value


def changed(pick, roots):
    """Changes something, and gives what undoes that, if it needs to be undone."""
    target = pick.choice([roots, *changeable(roots[:], [])])
    instead = lambda old: pick.choice((lambda: leaf(pick), lambda: copied(old), lambda: tree(pick, 2), lambda: old))()  # noqa: E731
    if isinstance(target, torch.Tensor):
        if target.requires_grad:
            return None
        size = target.shape[0]
        target.resize_(pick.randrange(1, 4))
        return lambda: target.resize_(size)
    if isinstance(target, types.FunctionType):
        if pick.random() < 0.5:
            return changed_dict(pick, target.__annotations__, instead)
        name = pick.choice(("__defaults__", "__annotations__"))
        old = getattr(target, name)
        setattr(target, name, (instead(old[0]),) if name == "__defaults__" else {"x": instead(old.get("x")), "y": old.get("y")})
        return lambda: setattr(target, name, old)
    if type(target) is Thing and pick.random() < 0.3:
        target.__class__ = Other
        return lambda: setattr(target, "__class__", Thing)
    if isinstance(target, (Thing, Slotted)):
        target = target.__dict__
    return changed_list(pick, target, instead) if isinstance(target, list) else changed_dict(pick, target, instead)


def changed_list(pick, items, instead):
    old, count = list(items), len(items)
    how = pick.randrange(8)
    if how <= 3 and count:
        if how:  # it moves to another place in memory
            items.extend(range(500))
            del items[count:]
        at = pick.randrange(count)
        items[at] = instead(items[at])
    elif how == 4:
        items.reverse()
    elif how == 5:
        items[:] = [None] * count
    elif how == 6:
        items.clear()
        items.extend(old)
    return lambda: items.__setitem__(slice(None), old)


def changed_dict(pick, table, instead):
    old = dict(table)
    how = pick.randrange(5)
    if how == 0:
        table["counter"] = pick.random()
        return None
    if how == 1:
        table.clear()
    elif how == 2 and table:
        del table[pick.choice(list(table))]
    elif table:
        key = pick.choice(list(table))
        table[key] = instead(table[key])

    def undo():
        table.clear()
        table.update(old)

    return undo


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_the_quick_run_agrees_with_the_full_one(first):
    for seed in range(first, first + 100):
        pick = random.Random(seed)
        roots = [tree(pick, 3) for _ in range(pick.randrange(1, 4))]
        made = program(*Guards(pick, roots).nodes)
        count, undo = len(roots), []
        for step in range(40):
            if undo and (pick.random() < 0.5 or len(undo) > 4):
                undo.pop()()
            elif pick.random() < 0.8:
                back = changed(pick, roots)
                undo += [back] if back else []
            arguments = tuple(roots[:count])
            told = [made.check(arguments, frame) for _ in range(pick.randrange(1, 4))]
            expected = made.explain(arguments, frame) is None
            assert told == [expected] * len(told), (seed, step)
