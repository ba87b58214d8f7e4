"""Attributes of modules that are not in their ``__dict__``: of their class, or of a ``__getattr__``."""

import types

import torch

import framegraft

from .differential import differential

GETATTR = """
def __getattr__(name):
    if name == "late":
        return 7
    raise AttributeError("no " + name)
"""


class Proxy(types.ModuleType):
    """Gives what another module has, as torch.backends does."""

    def __init__(self, inner, name):
        super().__init__(name)
        self.inner = inner

    def __getattr__(self, name):
        return self.inner.__getattribute__(name)


class Answering(Proxy):
    def __getattr__(self, name):
        return "the class's " + name


inner = types.ModuleType("inner")
inner.early = 3  # type: ignore[attr-defined]
exec(GETATTR, inner.__dict__)
proxy, answering = Proxy(inner, "proxy"), Answering(inner, "answering")
exec(GETATTR, answering.__dict__)


def told(function, *args):
    try:
        return function(*args)
    except AttributeError as error:
        return str(error)


@differential(graphs=1)
def test_getattribute(x):
    look = inner.__getattribute__
    seen = [told(look, name) for name in ("early", "late", "never")]
    seen += [told(types.ModuleType.__getattribute__, inner, name) for name in ("early", "late", "never")]
    seen += [told(object.__getattribute__, inner, name) for name in ("early", "late")]
    return seen, told(proxy.__getattribute__, "early"), type(look), x + 1


@differential(graphs=1)
def test_getattr(x):
    return proxy.early, proxy.late, told(lambda: proxy.never), answering.late, answering.never, x + 1


@differential()
def test_names_of_the_class(x):
    return inner.__eq__(inner), inner.__ne__(proxy), proxy.__eq__(inner), type(inner.__eq__), x + 1


@differential(graphs=1)
def test_backends(x):
    return torch.backends.cudnn.is_available(), torch.backends.cudnn.enabled, x + 1


@differential(graphs=1)
def test_types_of_bound_methods(x):
    return type([].__len__), type([].append), type("".join), type({}.fromkeys), type(x.add), type((1).__add__), x + 1


class Setting:
    """A data descriptor, as torch.backends has for its flags."""

    def __get__(self, module, owner):
        return module.kept

    def __set__(self, module, value):
        module.kept = value


class Settings(types.ModuleType):
    level = 1
    hidden = 2
    flag = Setting()

    @property
    def doubled(self):
        return self.kept * 2

    def total(self):
        return self.level + self.hidden


def settings():
    made = Settings("settings")
    made.kept, made.hidden = 5, 20
    return made


@differential(lambda: (settings(), torch.ones(2)), calls=1, graphs=1)
def test_attributes_of_its_class(module, x):
    return x + module.level, module.hidden, module.flag, module.doubled, module.total(), hasattr(module, "nothing"), module.__name__


@differential(lambda: (settings(), torch.ones(2)))
def test_data_descriptors_are_set(module, x):
    module.flag = 7
    return x + module.flag, module.kept, module.doubled


def test_attributes_of_its_class_are_guarded():
    class Changing(Settings):
        pass

    module = Changing("changing")
    module.kept = 3
    compiled = framegraft.compile(f := lambda x: x + module.level + module.hidden + module.doubled, backend="eager", fullgraph=True)

    def check():
        assert torch.equal(compiled(torch.ones(1)), f(torch.ones(1)))

    check()
    Changing.level = 4
    check()
    module.level = 9
    check()
    module.kept = 6
    check()
    Changing.doubled = 3
    check()


@differential(graphs=1)
def test_flags_of_torch(x):
    cudnn = torch.backends.cudnn
    return x + 1, cudnn.enabled, cudnn.benchmark, cudnn.deterministic, torch.backends.mkldnn.is_available(), torch.get_float32_matmul_precision()
