"""The object model: creation, descriptors, operators of subclasses, enums; no code of the program runs that eager mode does not run."""

import builtins
import collections
import enum
import functools
import operator
import types
import typing
import weakref

import pytest
import torch

import framegraft

from .differential import differential


class MadeByClassMethod:
    @classmethod
    def __new__(*args):
        return args


class TakesNothing:
    def __new__(cls):
        return object.__new__(cls)


class HandsOn:
    def __new__(cls, *args):
        return object.__new__(cls, *args)


class Stores(dict):
    __setattr__ = dict.__setitem__


class SetOnly:
    def __init__(self, name):
        self.name = name

    def __set__(self, obj, value):
        obj.__dict__[self.name] = value


class DeleteOnly:
    def __get__(self, obj, owner=None):
        return 7

    def __delete__(self, obj):
        obj.log.append("deleted")


class Described:
    a = SetOnly("a")
    b = DeleteOnly()

    def __init__(self):
        self.log = []


class Divides:
    def __floordiv__(self, other):
        return "left"

    def __rfloordiv__(self, other):
        return "right"


class Inherits(Divides):
    pass


class Overrides(Divides):
    def __rfloordiv__(self, other):
        return "own"


class WithProperty:
    prop = property(lambda self: "value")


class AsksSuper(WithProperty):
    @classmethod
    def ask(cls):
        return super().prop


class Words(list):
    def __eq__(self, other):
        return "eq"

    def __lt__(self, other):
        return "lt"

    def __add__(self, other):
        return "add"

    def __radd__(self, other):
        return "radd"

    __hash__ = None


class Table(dict):
    def __lt__(self, other):
        return "lt"

    def __ror__(self, other):
        return "ror"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Text(getattr(enum, "StrEnum", enum.Enum)):  # since CPython 3.11
    WORD = "word"


class Flags(enum.IntFlag):
    A = 1
    B = 2


class Guesses(enum.Enum):
    FIRST = 1

    @classmethod
    def _missing_(cls, value):
        LOG.append(value)
        return cls.FIRST


class Meta(enum.EnumMeta):
    def __call__(cls, value):
        return "called", value


class Called(enum.Enum, metaclass=Meta):
    X = 1


class Truth:
    def __init__(self, answer):
        self.answer = answer

    def __bool__(self):
        return self.answer


class Deletes:
    def __init__(self):
        self.log = []

    def __delattr__(self, name):
        self.log.append(name)
        super().__delattr__(name)


class Spy:
    def __init__(self):
        object.__setattr__(self, "asked", [])

    def __getattribute__(self, name):
        object.__getattribute__(self, "asked").append(name)
        return object.__getattribute__(self, name)


LOG = []


def outcome(fn, *args):
    try:
        return fn(*args)
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


@differential()
def test_new(x):
    found = [MadeByClassMethod(1, 2)[1:]]
    for make in (lambda: object.__new__(TakesNothing, 1), lambda: HandsOn(1), lambda: object.__new__(object, 1), lambda: object(1)):
        found.append(outcome(make))
    return x + 1, found, type(HandsOn()) is HandsOn


@differential()
def test_slot_filled_with_another_slot(x):
    table = Stores()
    outcome(lambda: setattr(table, "a", x + 1))
    return table


@differential(lambda: (torch.ones(3), Described()))
def test_descriptors_with_half_of_the_protocol(x, obj):
    before = obj.a is Described.__dict__["a"]
    obj.a = x
    first = obj.b
    del obj.b
    return before, obj.a + 1, first


@differential()
def test_reflected_operator_of_a_subclass(x):
    return x + 1, Divides() // Inherits(), Divides() // Overrides(), Inherits() // Divides(), Overrides() // Divides()


@differential()
def test_super_of_a_class(x):
    return x + 1, AsksSuper.ask() is WithProperty.prop


@differential(lambda: (torch.ones(3), Words([1]), Table(a=1)))
def test_operators_of_container_subclasses(x, words, table):
    return x + 1, words == [1], [1] == words, words < [2], words + [1], [1] + words, table < {}, {} | table, words == words


@differential(lambda: (torch.ones(3), {"a": 1}))
def test_read_only_mapping(x, table):
    proxy = types.MappingProxyType(table)

    def store():
        proxy["a"] = 2

    def delete():
        del proxy["a"]

    return x + 1, outcome(store), outcome(delete), table


@differential()
def test_texts_of_enums(x):
    texts = [str(Number.ONE), repr(Number.TWO), f"{Number.ONE}", f"{Number.TWO:>4}", str(Text.WORD), f"{Text.WORD}!", repr(Text.WORD)]
    return x + 1, texts, str(Flags.A | Flags.B), f"{Flags.B}"


@differential()
def test_calls_of_enums(x):
    made = enum.IntEnum("Made", ["A", "B"], start=5)
    LOG.clear()
    looked_up = Number(2), Number(Number.ONE), outcome(Number, 9), Guesses(4), Called(1), Flags(3)
    return x + 1, [m.value for m in made], [v.name if isinstance(v, enum.Enum) else v for v in looked_up], list(LOG)


@differential(lambda: (torch.ones(3), Truth(1), Truth(True)))
def test_truth_that_is_no_bool(x, wrong, right):
    return x + 1, outcome(bool, wrong), outcome(lambda: 1 if wrong else 2), bool(right)


@differential(lambda: (torch.ones(3), Deletes()))
def test_deleting_through_super(x, obj):
    obj.value = x + 1
    kept = obj.value
    del obj.value
    return kept, obj.log, hasattr(obj, "value")


@differential(lambda: (torch.ones(3), Spy()))
def test_nobody_else_asks_for_attributes(x, spy):
    spy.value = x + 1
    return spy.value, isinstance(spy, int), spy == 3, type(spy) is Spy


@differential(lambda: (torch.ones(3), property(len)))
def test_read_only_members(x, prop):
    def store(name):
        setattr(prop, name, 42)

    return x + 1, [outcome(store, name) for name in ("fget", "fset", "fdel")]


@differential(lambda: (torch.ones(3), [1], iter([1]), (i for i in "ab")))
def test_what_builtins_have_and_have_not(x, items, iterator, generator):
    return x + 1, items.__hash__, type(items).__base__ is object, list.__base__, generator.gi_running, {}.__hash__ is None


def test_identity_of_made_strings():
    def fn(x):
        word = "xyzpdq"
        made = word[:3] + word[3:]
        return x + 1, operator.is_(word, made), word is made, word == made, word[:] is word

    assert framegraft.compile(fn, backend="eager", fullgraph=True)(torch.ones(3))[1:] == (False, False, True, True)


class Named:
    @property
    def __class__(self):
        return Truth


@differential(lambda: (torch.ones(3), Named()))
def test_objects_that_tell_a_class_of_their_own(x, obj):
    return x + 1, isinstance(obj, Truth), isinstance(obj, (int, Named)), isinstance(obj, int), obj.__class__, type(obj) is Named


class ClaimsTensor:
    __class__ = torch.Tensor


class ClaimsBuffer:
    __class__ = torch.nn.Buffer


LINEAR, NUMBERS, CLAIMS = torch.nn.Linear(2, 2), torch.ones(2), ClaimsTensor()
PROXIES = [weakref.proxy(LINEAR), weakref.proxy(NUMBERS), CLAIMS]
BUFFERS = [weakref.proxy(LINEAR.weight), ClaimsBuffer()]


def claimants():
    return PROXIES


def buffers():
    return BUFFERS


@differential()
def test_what_claims_to_be_a_module_or_tensor(x):
    layer, numbers, claims = claimants()
    kind = "other"
    match layer:
        case torch.nn.Module():
            kind = "module"
    return (x + 1, isinstance(layer, torch.nn.Module), isinstance(layer, (int, torch.nn.Linear)), isinstance(layer, torch.Tensor), kind,
            torch.is_tensor(numbers), torch.is_tensor(claims), torch.is_tensor(layer), torch.is_tensor(x), torch.is_tensor(3))


@differential()
def test_what_claims_to_be_a_parameter_or_buffer(x):
    weight, buffer = buffers()
    return (x + 1, isinstance(weight, torch.nn.Parameter), isinstance(weight, torch.nn.Buffer), isinstance(buffer, torch.nn.Parameter),
            isinstance(buffer, torch.nn.Buffer), isinstance(buffer, torch.nn.Module))


class Watched(types.ModuleType):
    def __setattr__(self, name, value):
        LOG.append(("set", name))
        super().__setattr__(name, value)

    def __delattr__(self, name):
        LOG.append(("del", name))
        super().__delattr__(name)


@differential(lambda: (torch.ones(3), Watched("watched")))
def test_module_class_with_methods_of_its_own(x, module):
    LOG.clear()
    module.value = x + 1
    kept = module.value
    del module.value
    return kept, list(LOG)


def test_recompiling_asks_nothing_of_the_program():
    def fn(x, spy):
        return x + spy.value

    compiled = framegraft.compile(fn, backend="eager")
    for value in (1, "no number", 2.5):
        spy = Spy()
        spy.value = value
        with pytest.raises(TypeError) if value == "no number" else framegraft.config.patch():
            compiled(torch.ones(3), spy)
        assert object.__getattribute__(spy, "asked") == ["value"]


class Wraps:
    @classmethod
    @property
    def name(cls):
        return cls.__name__

    size = classmethod(len)
    __add__ = None
    __contains__ = None


class Fields(typing.NamedTuple):
    a: int
    b: int


@differential(lambda: (torch.ones(3), Wraps()))
def test_class_methods_of_other_descriptors(x, obj):
    return x + 1, Wraps.name, obj.name, outcome(lambda: obj + 1), outcome(lambda: 1 in obj), outcome(lambda: Wraps.size())


@differential()
def test_named_tuples_without_defaults(x):
    return x + 1, outcome(Fields, 1), Fields(1, 2), outcome(lambda: collections.namedtuple("P", "x y", defaults=())(1))


@differential(lambda: (torch.ones(3), float("nan")))
def test_containers_ask_identity_first(x, nan):
    items = [nan, x]
    return x + 1, nan in items, [nan] == [nan], (1, nan) == (1, nan), {"a": nan} == {"a": nan}, nan == nan


def test_replaced_builtins_are_the_programs_alone(monkeypatch):
    calls = []

    def counting(value):
        calls.append(value)
        return 7

    def fn(x, items):
        return x + len(items)

    compiled = framegraft.compile(fn, backend="eager")
    assert compiled(torch.zeros(1), [1]).item() == 1
    monkeypatch.setattr(builtins, "len", counting)
    got = compiled(torch.zeros(1), "ab").item()
    monkeypatch.undo()
    assert (got, calls) == (7, ["ab"])
    assert compiled(torch.zeros(1), [1, 2]).item() == 2


class Unsettable:
    named = property(lambda self: 1)


Unsettable.nameless = property(lambda self: 2)  # type: ignore[attr-defined]


@differential(lambda: (torch.ones(3), Unsettable()))
def test_properties_without_a_setter(x, obj):
    found = []
    for name in ("named", "nameless"):
        try:
            setattr(obj, name, 3)
        except AttributeError as error:
            found.append(str(error))
    return x + 1, found


class Failing:
    """A descriptor that is not there for some."""

    def __get__(self, obj, owner):
        raise AttributeError("no")


class FallsBack:
    failing = Failing()

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        if name == "never":
            raise AttributeError("never")
        return "made", name


class FallsBackPlainly:
    failing = Failing()

    def __getattr__(self, name):
        return "made", name


@differential(lambda: (torch.ones(2), FallsBack(), FallsBackPlainly()))
def test_fallback_of_both_look_ups(x, both, plain):
    try:
        found = both.absent, both.failing, plain.absent, plain.failing, getattr(both, "never", None)
    except AttributeError as error:
        found = error.args
    return found, x + 1


class HasDict:
    fixed = 5


class HasSlots:
    __slots__ = ("slot",)
    fixed = 5


@differential(lambda: (torch.ones(2), [HasDict(), HasSlots(), object()]))
def test_attributes_that_cannot_be_changed(x, objects):
    told = []
    for obj in objects:
        for act in (getattr, lambda obj, name: setattr(obj, name, 1), delattr):
            for name in ("fixed", "nowhere"):
                try:
                    act(obj, name)
                except AttributeError as error:  # in the words, and with the attributes, that the running CPython gives it
                    told.append((error.args, error.name, error.obj is obj))
    return x + 1, told


class Asked:
    """Notes each attribute that is asked for, its class's name among them."""

    log: list = []

    def __init__(self):
        self.n = 2

    def __getattribute__(self, name):
        if name != "log":
            type(self).log.append(name)
        return object.__getattribute__(self, name)


class AskedList(list):
    def __iter__(self):
        Asked.log.append("iter")
        return super().__iter__()


class AskedDict(dict):
    def values(self):
        Asked.log.append("values")
        return super().values()


@differential(lambda: (functools.lru_cache(lambda n: n * 2), (Asked(), AskedList([1]), AskedDict(a=1)), torch.ones(2)))
def test_objects_are_not_asked_where_a_function_must_be_pure(remembered, given, x):
    Asked.log.clear()
    made, (one, items, table) = Asked(), given
    n = made.n + one.n + len(items) + len(table)
    return remembered(n), list(Asked.log), x + n


class Slotted:
    __slots__ = ("first", "second")


class SlottedAgain(Slotted):
    __slots__ = ()


@differential(lambda: (torch.ones(2), Slotted(), SlottedAgain()))
def test_texts_of_slots_that_are_not_set(x, one, other):
    def text(obj):
        try:
            return obj.second
        except AttributeError as error:
            return str(error), error.name, error.obj is obj

    made = Slotted()
    found = [text(one), text(other), text(made), text(SlottedAgain())]
    made.second = 3
    found.append(text(made))
    del made.second
    return x + 1, found, text(made)


class Emptied:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@differential(lambda: (torch.ones(2), Emptied(1)))
def test_slots_deleted(x, given):
    made = Emptied(x)
    del made.a
    seen = [hasattr(made, "a"), hasattr(made, "b")]
    made.a = 2
    for obj, name in ((given, "a"), (made, "b"), (given, "a")):
        try:
            delattr(obj, name)
        except AttributeError as error:
            seen.append(str(error))
    return x, seen, made.a, made


class Bound:
    def method(self):
        return 1

    def asks(self):
        return super()


BOUND = {
    "method": lambda: Bound().method,
    "builtin method": lambda: [].append,
    "class method": lambda: dict.fromkeys,
    "super": lambda: Bound().asks(),
    "partial": lambda: functools.partial(len, []),
    "getter": lambda: operator.itemgetter(1),
}


@pytest.mark.parametrize("make", BOUND.values(), ids=BOUND)
@pytest.mark.parametrize("breaks", [False, True])
def test_what_is_bound_to_an_object_is_one_object(make, breaks):
    """In a variable, in containers and closures, behind a break and in results."""

    def f(x):
        bound = make()
        kept, keyed = [bound], {"bound": bound}
        if breaks:
            print(end="")
        return x + 1, bound, kept, keyed, lambda: bound, kept[0] is bound, keyed["bound"] is bound

    _, bound, kept, keyed, held, *same = framegraft.compile(f, backend="eager")(torch.ones(1))
    assert kept[0] is bound and keyed["bound"] is bound and held() is bound and same == [True, True]


def test_a_weak_reference_to_a_bound_method_that_a_closure_holds():
    def f(x):
        method = Bound().method

        def call():
            return method()

        call.of = weakref.ref(method)
        return call, x + 1, call.of() is method

    call, _, same = framegraft.compile(f, backend="eager")(torch.ones(1))
    assert same and call.of() is not None and call() == 1
