"""A random program as source text, from a seed.

The program defines ``main`` (what is captured), ``make()`` (fresh equal arguments) and ``change(args)`` (mutates globals,
classes, functions and arguments between two calls).
"""

from .scope import Type
from .statements import Statements

PRELUDE = '''\
import contextlib, copy, functools, itertools, math, operator
import torch

notes = []

class Boom(Exception):
    def __init__(self, *args):
        super().__init__(*args)
        self.extra = len(args)

def note(*values):
    notes.append(values)

def note_error(error):
    notes.append((type(error).__name__, error.args, type(error.__context__).__name__, type(error.__cause__).__name__))

def ident(value=0):
    return value

def id_key(value):
    return 0

class Manager:
    def __init__(self, tag):
        self.tag = tag
    def __enter__(self):
        notes.append(("enter", self.tag))
        return self.tag
    def __exit__(self, kind, value, trace):
        notes.append(("exit", self.tag, kind.__name__ if kind else None, value.args if value is not None else None))
        return False

class Swallow:
    def __enter__(self):
        return self
    def __exit__(self, kind, value, trace):
        notes.append(("swallow", kind is None))
        return kind is not None and issubclass(kind, (ValueError, LookupError))

@contextlib.contextmanager
def managing(tensor):
    notes.append("in")
    try:
        yield tensor + 1
    except KeyError as error:
        notes.append(("caught", error.args))
    finally:
        notes.append("out")

def bump_global():
    global G_int
    G_int += 1
    return G_int

def set_global(value):
    global G_float, G_int
    G_float = value * 0.5
    if value > 3:
        G_int = value
'''


class Program(Statements):
    """One random program."""

    prelude = PRELUDE
    changes: tuple[str, ...] = ()

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.classes = []
        self.functions = []
        self.generators = []
        self.pending = []
        self.breaks = self.pick((0.0, 0.0, 0.02, 0.06))

    def text(self) -> str:
        self.lines = self.prelude.splitlines()
        self.emit(f"G_int, G_float, G_str = {self.random.randrange(1, 6)}, 1.5, 'glob'")
        self.emit("G_list, G_dict = [4, 5], {'a': 1, 'b': 2}")
        self.emit("G_tensor = torch.tensor([0.5, -1.0, 2.0])")
        for _ in range(self.random.randrange(1, 3)):
            self.define_class()
        for _ in range(self.random.randrange(1, 4)):
            self.define_function()
        if self.chance(0.7):
            self.define_generator()
        self.emit(f"G_obj = {self.classes[0]['name']}(2, torch.ones(3))")
        self.emit("@functools.wraps(ident)" if self.chance(0.05) else "# what is captured")
        self.define_main()
        self.define_make()
        self.define_change()
        return "\n".join(self.lines) + "\n"

    # -- definitions

    def define_class(self) -> None:
        number = len(self.classes)
        name = f"C{number}"
        base = self.classes[0]["name"] if self.classes and self.chance(0.4) else ""
        slots = not base and self.chance(0.15)
        self.emit(f"class {name}({base}):" if base else f"class {name}:")
        self.indent += 1
        if slots:
            self.emit("__slots__ = ('a', 'b', 't')")
        self.emit("total = 10")
        if self.chance(0.4):
            self.emit("__match_args__ = ('a',)")
        self.emit("def __init__(self, a, t):")
        with self.function():
            if base:
                self.emit("super().__init__(a, t)")
            self.emit("self.a = a")
            self.emit("self.b = [a, 1]")
            self.emit("self.t = t")
        self.emit(f"def __repr__(self): return f'{name}({{self.a}})'")
        members: list[tuple[str, Type]] = [("a", "I"), ("b", ("list", "I")), ("t", "T"), ("total", "I")]
        settable: list[tuple[str, Type]] = [("a", "I"), ("b", ("list", "I")), ("t", "T")]
        if not slots:
            settable += [("extra", "I"), ("total", "I")]
        if base:
            members += [m for m in self.classes[0]["members"] if m not in members and self.chance(0.7)]
        for make in (self.add_method, self.add_property, self.add_operators, self.add_static, self.add_getattr, self.add_setattr,
                     self.add_call, self.add_container, self.add_descriptor, self.add_bool):
            if self.chance(0.45):
                make(members, settable, base)
        self.indent -= 1
        self.classes.append({"name": name, "members": members, "settable": settable, "slots": slots})

    def method_body(self, wanted: Type, **names: Type) -> None:
        with self.function() as scope:
            scope.names |= names
            self.budget = 3
            self.body(self.random.randrange(0, 3))
            self.emit(f"return {self.ex(wanted)}")

    def self_type(self) -> dict[str, Type]:
        return {}

    def add_method(self, members: list, settable: list, base: str) -> None:
        self.emit("def grow(self, n):")
        with self.function() as scope:
            scope.names |= {"n": "I"}
            self.emit(self.pick(("self.a += n", "self.a = self.a + n", "self.b.append(n)", "self.t = self.t * n")))
            self.budget = 2
            self.body(self.random.randrange(0, 2))
            if base and self.chance(0.5) and ("grow(#)", "I") in self.classes[0]["members"]:
                self.emit("return super().grow(n) + 1")
            else:
                self.emit(f"return self.a + {self.ex('I', 1)}")
        members.append(("grow(#)", "I"))

    def add_property(self, members: list, settable: list, base: str) -> None:
        self.emit("@property")
        self.emit("def double(self): return self.t * 2 + self.a")
        members.append(("double", "T"))
        if self.chance(0.6):
            self.emit("@double.setter")
            self.emit("def double(self, value): self.t = value / 2")
            settable.append(("double", "T"))

    def add_operators(self, members: list, settable: list, base: str) -> None:
        for name in self.random.sample(("__eq__", "__lt__", "__add__", "__radd__", "__iadd__", "__hash__", "__matmul__", "__neg__"), 4):
            if name == "__hash__":
                self.emit("def __hash__(self): return 5")
            elif name == "__eq__":
                self.emit(f"def __eq__(self, other): return {self.pick(('self.a == other.a', 'NotImplemented', 'isinstance(other, C0) and self.a == other.a'))}")
                self.emit("__hash__ = object.__hash__")
            elif name == "__lt__":
                self.emit("def __lt__(self, other): return self.a < other.a")
            elif name == "__neg__":
                self.emit("def __neg__(self): return -self.a")
            else:
                self.emit(f"def {name}(self, other):")
                self.emit(f"    {self.pick(('return self.t + other if isinstance(other, torch.Tensor) else NotImplemented', 'note((self.a, 1)); return self.t', 'return self.t * self.a'))}")

    def add_static(self, members: list, settable: list, base: str) -> None:
        self.emit("@staticmethod")
        self.emit("def helper(n): return n * 2")
        self.emit("@classmethod")
        self.emit("def build(cls, n): note(cls.__name__); return cls.total + n")
        members += [("helper(#)", "I"), ("build(#)", "I")]

    def add_getattr(self, members: list, settable: list, base: str) -> None:
        self.emit("def __getattr__(self, name):")
        self.emit("    if name == 'magic': return 42")
        self.emit("    raise AttributeError(name)")
        members.append(("magic", "I"))

    def add_setattr(self, members: list, settable: list, base: str) -> None:
        if self.chance(0.4):
            self.emit("def __setattr__(self, name, value):")
            self.emit(f"    note(name); {self.pick(('object.__setattr__(self, name, value)', 'super().__setattr__(name, value)'))}")

    def add_call(self, members: list, settable: list, base: str) -> None:
        self.emit("def __call__(self, n, t=None):")
        self.method_body("T", n="I")
        members += [("__call__(#)", "T"), ("__call__(#, t=@)", "T")]

    def add_container(self, members: list, settable: list, base: str) -> None:
        self.emit("def __len__(self): return 3")
        self.emit("def __getitem__(self, k):")
        self.emit("    if k >= 3: raise IndexError(k)")
        self.emit("    return self.a + k")
        if self.chance(0.5):
            self.emit("def __contains__(self, k): return k == self.a")
        if self.chance(0.5):
            self.emit("def __iter__(self): return iter(self.b)")
        members += [("__len__()", "I"), ("__getitem__(1)", "I")]

    def add_descriptor(self, members: list, settable: list, base: str) -> None:
        if self.chance(0.5):
            self.emit("class Field:")
            self.emit("    def __get__(self, obj, owner=None): return obj.a * 3 if obj is not None else 7")
            if self.chance(0.5):
                self.emit("    def __set__(self, obj, value): note(('set', value)); obj.a = value")
            self.emit("field = Field()")
            members.append(("field", "I"))
        else:
            self.emit("@functools.cached_property")
            self.emit("def cached(self): note('computed'); return self.a + 100")
            members.append(("cached", "I"))

    def add_bool(self, members: list, settable: list, base: str) -> None:
        self.emit("def __bool__(self): return self.a > 2")

    def define_function(self) -> None:
        name, wanted = self.fresh("helper"), self.pick(("T", "I", "T"))
        self.emit(f"def {name}(t, b={self.random.randrange(5)}, *rest, k=1, **other):")
        with self.function() as scope:
            scope.names |= {"t": "T", "b": "I", "k": "I", "rest": ("tuple", "I")}
            self.budget = 5
            self.body(self.random.randrange(0, 4))
            self.emit(f"return {self.ex(wanted)}")
        self.functions.append((name, wanted))

    def define_generator(self) -> None:
        name, wanted = self.fresh("gen"), self.pick(("T", "I"))
        self.emit(f"def {name}(t, n):")
        with self.function("generator") as scope:
            scope.names |= {"t": "T", "n": "I"}
            self.generator_body(wanted)
        self.generators.append((name, wanted))

    def define_main(self) -> None:
        cls = self.random.randrange(len(self.classes))
        self.emit("def main(x, y, n, s, items, table, tensors, obj, chosen):")
        with self.function() as scope:
            scope.is_main = True
            scope.names |= {"x": "T", "y": "T", "n": "I", "s": "S", "items": ("list", "I"), "table": ("dict", "I"),
                            "tensors": ("list", "T"), "obj": ("obj", cls), "chosen": ("set",)}
            if self.chance(0.3):
                self.emit("global G_int, G_float")
                scope.names |= {"G_int": "I", "G_float": "F"}
            self.budget = self.random.randrange(5, 16)
            while self.budget > 0:
                self.statement()
            self.emit(f"return {self.results()}")
        self.main_class = cls

    def define_make(self) -> None:
        cls = self.classes[self.main_class]["name"]
        grad = self.pick(("", "", ".requires_grad_()"))
        alias = self.pick(("y = torch.tensor([1.5, 0.5, -2.0])",) * 4 + ("y = x", "y = x.view(3)", "y = x.clone()[:3]"))
        items = self.pick(("[3, 1, 2]", "[]", "[7]", "[1, 2, 3, 4]"))
        tensors = self.pick(("[torch.ones(3), x]", "[x, y]", "[torch.zeros(3)]", "[x, x]"))
        self.emit("def make():")
        self.emit("    notes.clear()")
        self.emit(f"    x = torch.tensor([1.0, -2.0, 3.0]){grad}")
        self.emit(f"    {alias}")
        self.emit(f"    return [x, y, {self.random.randrange(4)}, 'abc', {items}, {{'a': 1, 'b': 5}}, {tensors}, {cls}(3, x.detach().clone()), {{1, 2}}]")

    def define_change(self) -> None:
        cls = self.pick(self.classes)["name"]
        helper = self.functions[0][0]
        wanted = self.functions[0][1]
        changes = ["G_list.append(9)", "G_dict['c'] = 3", "globals().__setitem__('G_int', 7)", "args[4].append(2)", "args[7].a = 8",
                   "args[7].t = torch.zeros(3)", "args[5]['z'] = 1", "args[5].pop('a')", f"{cls}.total = 77", "args[2] += 1",
                   "args[3] = 'other'", "args[6].append(torch.ones(3))", f"{helper}.__defaults__ = (2,)", "args[0] = args[0].detach().clone()",
                   "args[0] = torch.tensor([5.0, -6.0, 0.5, 1.0])", "args[1] = args[0]", "args[8].add(5)", "args[2] = True", "args[2] = 2.5",
                   f"{cls}.__repr__ = lambda self: 'changed'", "args[0] = torch.tensor([1, 2, 3])", "globals().__setitem__('G_float', -0.0)",
                   f"globals().__setitem__({helper!r}, lambda *a, **k: {'torch.full((3,), 2.0)' if wanted == 'T' else '6'})",
                   "args[7].b = args[4]", "args[6][0] = args[0]", "globals().__setitem__('G_tensor', args[0].detach())",
                   f"{cls}.extra = property(lambda self: 5)", "args[7] = args[5]", "args[4] = tuple(args[4])", "torch.set_grad_enabled(False)",
                   "args[5] = dict(reversed(args[5].items()))", "G_obj.a = 50", f"{cls}.__getattribute__ = lambda self, n: object.__getattribute__(self, n)"]
        changes += self.changes
        self.emit("def change(args):")
        for change in self.random.sample(changes, self.random.randrange(1, 3)):
            self.emit(f"    {change}")
