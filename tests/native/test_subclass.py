"""SUBCLASS: what an abstract base class tells of a class, which one look at the ABC cache token proves to be so still."""

import abc

import pytest

from framegraft import _native
from framegraft.native import calibrate

from .build import holds, node, program

calibrate.ensure_calibrated()


class Asked(abc.ABCMeta):
    """Counts how often its classes' hook is asked."""

    times = 0

    def __subclasscheck__(cls, subclass):
        Asked.times += 1
        return super().__subclasscheck__(subclass)


@pytest.fixture(params=(True, False), ids=("token", "no token"), autouse=True)
def token(request):
    """With the token's place known, and without."""
    if not request.param:
        _native.set_abc_token(0)
    elif not calibrate._abc_token():
        pytest.skip("the place of the token is not known")
    yield request.param
    _native.set_abc_token(calibrate._abc_token())


def fresh():
    """An abstract class, one derived from it, and another."""
    base = abc.ABCMeta("Base", (), {})
    return base, type("Derived", (base,), {}), type("Apart", (), {})


def register_elsewhere():
    abc.ABCMeta("Elsewhere", (), {}).register(int)


def test_what_was_registered_elsewhere_changes_nothing():
    base, derived, apart = fresh()
    made = program(node("CONST", base, ("SUBCLASS", (derived, True)), ("SUBCLASS", (apart, False))))
    for _ in range(10):  # more often than a fact is tried anew
        assert holds(made)
        register_elsewhere()
        assert holds(made)


def test_a_class_that_is_registered():
    base, _, apart = fresh()
    refuses, takes = (program(node("CONST", base, ("SUBCLASS", (apart, answer)))) for answer in (False, True))
    assert holds(refuses) and not holds(takes)
    base.register(apart)
    assert not holds(refuses) and holds(takes)
    register_elsewhere()
    assert not holds(refuses) and holds(takes)


def test_registered_with_a_class_below():
    base, derived, apart = fresh()
    made = program(node("CONST", base, ("SUBCLASS", (apart, False))))
    assert holds(made)
    derived.register(apart)
    assert not holds(made)


def test_registered_by_another_guard():
    """The token is that of the time before the answer: what is registered in the same run is seen in the next one at the latest."""
    base, _, apart = fresh()
    pending = []

    def registers(_):
        while pending:
            pending.pop().register(apart)
        return True

    made = program(node("CONST", base, ("SUBCLASS", (apart, False))), node("ARG", 0, ("PY", registers)))
    assert made.check((1,), fresh)
    pending.append(base)
    made.check((1,), fresh)
    assert not pending
    assert not made.check((1,), fresh)


def test_a_hook_is_asked_once(token):
    class Base(abc.ABC):
        asked = 0

        @classmethod
        def __subclasshook__(cls, other):
            Base.asked += 1
            return NotImplemented

    made = program(node("CONST", Base, ("SUBCLASS", (int, False))))
    for _ in range(5):
        assert holds(made)
    assert Base.asked == 1


def test_a_metaclass_that_counts_is_not_asked():
    """ABCMeta's own answer is the one that is guarded."""
    base = Asked("Base", (), {})
    before = Asked.times
    assert holds(program(node("CONST", base, ("SUBCLASS", (int, False)))))
    assert Asked.times == before


def test_an_error_of_a_hook_is_no():
    class Base(abc.ABC):
        @classmethod
        def __subclasshook__(cls, other):
            raise ValueError

    assert not holds(program(node("CONST", Base, ("SUBCLASS", (int, False)))))


@pytest.mark.parametrize("payload", (int, (int,), (1, True), [int, True]))
def test_payloads_that_are_none(payload):
    with pytest.raises(TypeError, match="SUBCLASS takes"):
        program(node("CONST", int, ("SUBCLASS", payload)))


def test_what_is_no_abstract_class():
    assert not holds(program(node("CONST", int, ("SUBCLASS", (int, True)))))
