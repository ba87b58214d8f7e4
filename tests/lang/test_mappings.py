"""defaultdict, OrderedDict and other subclasses of dict: contents, classes, the entries they make themselves."""

import collections
import types

import torch

import framegraft

from .differential import differential


class Doubling(collections.defaultdict):
    def __missing__(self, key):
        self[key] = key * 2
        return key


class Plain(collections.defaultdict):
    pass


@differential(lambda: (torch.ones(2), collections.defaultdict(list, old=[1])))
def test_defaultdict_from_outside(x, d):
    made = d["new"]
    d["newer"].append(x + 1)
    d["old"].append(x)
    return made, len(d), "absent" in d, d.get("absent"), sorted(d), d.default_factory, d | {"z": 1}


@differential()
def test_defaultdict_made_inside(x):
    d = collections.defaultdict(lambda: collections.defaultdict(int), a={"q": 1})
    d["b"]["c"] += 1
    d["b"]["c"] += x
    e = d.copy()
    e["z"]["z"] = 3
    return dict(d["b"]), type(e), {k: dict(v) for k, v in e.items()}, len(d)


@differential()
def test_defaultdict_without_a_factory(x):
    d = collections.defaultdict(None, b=3)
    try:
        return d["b"] + d["c"]
    except KeyError as error:
        return error.args, type(d | {1: 2}), type({1: 2} | d), x + d["b"]


@differential()
def test_subclasses_of_defaultdict(x):
    d, e = Doubling(None), Plain(list)
    first, second = d["a"], d["a"]
    e["k"].append(x)
    return first, second, dict(d), dict(e), type(e), d.default_factory


@differential(lambda: (torch.ones(2), collections.OrderedDict(b=1, a=2)))
def test_ordered_dict_keeps_its_class(x, d):
    inside = collections.OrderedDict(a=1)
    return type(d.copy()), type(d | {"c": 1}), type({"c": 1} | d), type(inside.copy()), list(d | inside), x + d["a"]


class Table(dict):
    pass


@differential(lambda: (torch.ones(2), Table(b=1)))
def test_plain_subclass_does_not(x, d):
    return type(d.copy()), type(d | {"c": 1}), type(Table(a=1) | d), x + d["b"]


@differential(lambda: ((lambda t: (t, {t: 1}, collections.defaultdict(dict, {t: {"n": torch.ones(2)}})))(torch.ones(2))))
def test_tensors_as_keys(x, d, state):
    entry = state[x]
    entry["n"] += 1
    other = x * 2
    state[other]["n"] = 5
    return d[x], x in d, other in d, d.get(other), len(state), entry["n"] + x, state[other]


@differential()
def test_generic_aliases(x):
    kinds = list[int], dict[str, torch.Tensor], tuple[int, ...], type[int]
    return [str(k) for k in kinds], x + len(kinds)


class Output(collections.OrderedDict):
    """As outputs of models are: reading asks the base class, and attributes are entries, too."""

    def __getitem__(self, key):
        if isinstance(key, str):
            return dict(self.items())[key]
        return tuple(self[k] for k in self.keys())[key]

    def read(self, key):
        return super().__getitem__(key), dict.__getitem__(self, key), dict.get(self, key), dict.__contains__(self, key), dict.__len__(self)


@differential(lambda: (torch.ones(2),), graphs=1)
def test_reading_ordered_dicts_as_dicts(x):
    made = Output(first=x + 1)
    made["second"] = x * 2
    return made.read("second"), made[0], made["first"], len(made)


class Answering(dict):
    def __missing__(self, key):
        return f"no {key}"

    def __contains__(self, key):
        return True


@differential(lambda: (torch.ones(2), Answering(a=1)))
def test_proxy_of_a_class_with_methods_of_its_own(x, d):
    seen = []
    for inner in (d, Answering(b=2), collections.OrderedDict(a=1), {"a": 1}):
        view = types.MappingProxyType(inner)
        seen.append((len(view), "z" in view, view.get("z"), list(view), view["a"] if "a" in inner else None))
    return seen, x + 1


@differential(lambda: (torch.ones(2), {("a", "to", "b"): 2, ("a", 1, None): 3, "c": 4}), graphs=1)
def test_entries_under_tuples(x, d):
    made = {}
    for key, factor in d.items():
        x = x * factor + len(key)
        made[key] = x
    return made, list(d), ("a", "to", "b") in d, d["a", 1, None], next(iter(d)) is next(iter(d.keys()))


def test_entries_under_tuples_that_are_equal_and_not_alike():
    def f(x, d):
        return x + 1, [key[0] for key in d]

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    for key in (1, True, 1.0, 0.0, -0.0, 1):
        d = {(key, "a"): 2}
        assert repr(compiled(torch.ones(2), d)) == repr(f(torch.ones(2), d))


class Ordered(collections.OrderedDict):
    pass


class Listing(collections.defaultdict):
    def __init__(self, *args, **kwargs):
        super().__init__(list, *args, **kwargs)


@differential(lambda: (torch.ones(2),))
def test_wrong_arguments_of_initialisers(x):
    told = []
    for act in (lambda: Ordered((), ()), lambda: Ordered().__init__((), ()), lambda: Ordered().update((), ()),
                lambda: collections.OrderedDict().update({}, {}, {}), lambda: collections.OrderedDict().pop(x=1),
                lambda: collections.defaultdict(int).__init__(42), lambda: collections.defaultdict(int).__init__(None),
                lambda: Listing().__init__([], a=1), lambda: collections.defaultdict(int).__init__([])):
        try:
            told.append(act())
        except TypeError as error:
            told.append(str(error))
    return x + 1, told


@differential(lambda: (torch.ones(2),), graphs=1)
def test_initialisers_of_subclasses(x):
    made = Listing({"a": [1]}, b=[2])
    made["c"].append(x + 1)
    return made, dict(made)


class Marking(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, (value, "set"))


class Begun(collections.defaultdict):
    def __init__(self):
        super().__init__(list)
        self["first"] = [0]


class Elsewhere(dict):
    def __new__(cls):
        return {"made": "elsewhere"}


class Telling:
    def __init__(self, log):
        self.log = log

    def __iter__(self):
        for key in "ab":
            self.log.append(key)
            yield key


@differential(lambda: (torch.ones(2), []), graphs=1)
def test_made_from_keys(x, log):
    made = [
        collections.defaultdict.fromkeys("ab", x),
        collections.OrderedDict.fromkeys("ba"),
        Marking.fromkeys("ab", x),
        Ordered.fromkeys("ab"),
        Begun.fromkeys(Telling(log), 1),
        Elsewhere.fromkeys("ab", 1),
        dict.fromkeys(Telling(log)),
        Ordered.fromkeys(value=1, iterable="ba"),
        collections.OrderedDict.fromkeys("a", value=x),
    ]
    made[4]["new"].append(x + 1)
    return [(type(m), m) for m in made], made[0].default_factory, made[4].default_factory
