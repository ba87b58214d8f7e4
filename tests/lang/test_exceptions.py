"""try, except, else, finally in all nestings; raise in all forms."""

import sys

import torch

import framegraft

from .differential import differential

LOG = []


class Custom(Exception):
    def __init__(self, code, *args):
        super().__init__(code, *args)
        self.code = code


class Child(Custom, KeyError):
    pass


def fails(x, kind=ValueError, *args):
    raise kind(*args)


def guarded(x, log):
    try:
        log.append("try")
        return x + 1
    finally:
        log.append("finally")


@differential(graphs=1)
def test_nothing_raised(x):
    try:
        y = x + 1
    except ValueError:
        y = x + 2
    else:
        y = y * 2
    finally:
        y = y - 1
    return y


@differential(graphs=1)
def test_caught(x):
    try:
        x = x + 1
        raise ValueError("no", 3)
    except (TypeError, ValueError) as error:
        x = x * 2
        args = error.args
    else:
        x = x * 100
    return x, args


@differential()
def test_name_unbound_after_except(x):
    error = 1
    try:
        raise ValueError
    except ValueError as error:
        x = x + 1
    return x, error


@differential()
def test_raised_in_callee(x):
    log = []
    try:
        fails(x, Child, 7, "msg")
    except ValueError:
        log.append("value")
    except KeyError as error:
        log.append((error.code, error.args, isinstance(error, Custom)))
    return x + 1, log


@differential()
def test_uncaught(x):
    LOG.append("before")
    y = x * 2
    fails(y, Custom, 4)
    LOG.append("never")


@differential()
def test_raise_from(x):
    try:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("outer") from error
    except ValueError as error:
        first = (error.__cause__.args, error.__suppress_context__)
    try:
        raise TypeError("gone") from None
    except TypeError as error:
        return x, first, error.__cause__, error.__suppress_context__


@differential()
def test_context_uncaught(x):
    try:
        fails(x, KeyError, "a")
    except KeyError:
        raise Custom(1)


@differential()
def test_raise_from_uncaught(x):
    try:
        {}["missing"]
    except KeyError as error:
        raise Custom(2, "with") from error


@differential()
def test_reraise(x):
    log = []
    try:
        try:
            fails(x, ValueError, "v")
        except ValueError:
            log.append("first")
            raise
        finally:
            log.append("finally")
    except ValueError as error:
        log.append(error.args)
    return x * 2, log


@differential()
def test_finally_runs_on_return(x):
    log = []
    y = guarded(x, log)
    return y, log


@differential(build=True)
def test_finally_overrides():
    def g(x):
        try:
            return x
        finally:
            return x + 1  # noqa: B012

    def h(x):
        for i in range(3):
            try:
                raise ValueError
            finally:
                break  # noqa: B012
        return x * i

    def f(x):
        return g(x), h(x)

    return f


@differential()
def test_nested_try(x):
    log = []
    try:
        try:
            try:
                raise KeyError(1)
            except ValueError:
                log.append("wrong")
            finally:
                log.append("f1")
        except KeyError as error:
            log.append(error.args)
            raise TypeError(2)
        finally:
            log.append("f2")
    except TypeError as error:
        log.append((error.args, type(error.__context__).__name__))
    else:
        log.append("else")
    finally:
        log.append("f3")
    return x, log


@differential()
def test_raise_in_else_and_finally(x):
    log = []
    try:
        try:
            pass
        except ValueError:
            log.append("no")
        else:
            raise ValueError("else")
        finally:
            log.append("finally")
    except ValueError as error:
        log.append(error.args)
    try:
        try:
            raise KeyError("lost")
        finally:
            raise ValueError("new")
    except ValueError as error:
        log.append(error.__context__.args)
    return x, log


@differential(lambda: (torch.tensor([-1.0, 2.0]),))
def test_tensor_branch_in_try(x):
    log = []
    try:
        if x[0] < 0:
            raise Custom(5)
        log.append("positive")
    except Custom as error:
        log.append(error.code)
        if x[1] > 0:
            log.append("second")
    finally:
        log.append("finally")
    return x, log


@differential(lambda: (torch.ones(2), {"a": [1]}))
def test_side_effects_before_raise(x, d):
    d["a"].append(2)
    x.add_(1)
    d["b"] = x * 2
    LOG.append("seen")
    raise RuntimeError("half way")


@differential()
def test_builtin_errors(x):
    out = []
    for f in (
        lambda: [][0],
        lambda: {}[1],
        lambda: 1 / 0,
        lambda: int("x"),
        lambda: None.foo,
        lambda: undefined_name,  # noqa: F821
        lambda: "a" + 1,
        lambda: next(iter(())),
        lambda: (1, 2).index(3),
        lambda: len(3),
    ):
        try:
            f()
        except Exception as error:
            out.append((type(error).__name__, str(error)))
    return x, out


@differential()
def test_raise_class_and_wrong_value(x):
    out = []
    try:
        raise Custom
    except TypeError as error:
        out.append(str(error))
    try:
        raise 5
    except TypeError as error:
        out.append(str(error))
    try:
        raise
    except RuntimeError as error:
        out.append(str(error))
    return x, out


@differential()
def test_exception_objects(x):
    error = Custom(3, "b")
    again = error.with_traceback(None)
    return x, error is again, str(error), repr(error), error.args, Child.__mro__[1].__name__


@differential(lambda: (torch.ones(2, 3), torch.ones(4, 5)))
def test_error_of_tensor_operation(x, y):
    try:
        return x @ y
    except RuntimeError:
        return x + 1


@differential()
def test_exception_in_argument(x):
    log = []
    try:
        log.append(torch.add(x, fails(x, LookupError, "arg")))
    except LookupError as error:
        log.append(error.args)
    return x, log


class Named:
    def __getattr__(self, name):
        raise AttributeError(name)


class Reader:
    @property
    def inner(self):
        return self.missing


def named(error):
    return type(error), error.args, error.name, getattr(error, "obj", "none")


@differential(lambda: (torch.ones(3), [1], Named(), Reader()))
def test_attribute_error_tells_name_and_object(x, items, hooked, reader):
    found = []
    for read in (lambda: items.nope, lambda: hooked.hidden, lambda: reader.inner, lambda: Named.lost, lambda: torch.no_such_thing,
                 lambda: (3).no_such_thing, lambda: getattr(items, "other")):
        try:
            read()
        except AttributeError as error:
            found.append(named(error))
    try:
        raise AttributeError("said", name="n", obj=items)
    except AttributeError as error:
        kept = error
    kept.name = "changed"
    try:
        items.nope = 3
    except AttributeError as error:
        found.append(named(error))
    return x + 1, found, kept, named(kept), AttributeError("plain").name


@differential()
def test_name_error_tells_name(x):
    def inner():
        return later

    found = []
    for read in (lambda: no_such_global, inner):  # noqa: F821
        try:
            read()
        except NameError as error:
            found.append((error.args, error.name))
    try:
        x + unbound  # noqa: F821, B018
        unbound = 1
    except NameError as error:
        found.append((error.args, error.name))
    later = 2
    return x + later, found


@differential()
def test_context_that_goes_round(x):
    first, second = ValueError(1), KeyError(2)
    first.__context__, second.__context__ = second, first
    try:
        raise first
    except ValueError:
        try:
            raise TypeError(3)
        except TypeError as error:
            return x + 1, error.__context__ is first, first.__context__ is second, second.__context__ is first


@differential(lambda: (torch.ones(3), int))
def test_catching_what_is_no_exception(x, cls):
    try:
        try:
            raise ValueError(1)
        except cls:
            return x
    except TypeError as error:
        return x + 1, str(error), type(error.__context__)


@differential(lambda: (torch.ones(3), (ValueError, int)))
def test_catching_a_tuple_with_what_is_no_exception(x, classes):
    try:
        try:
            raise ValueError(1)
        except classes:
            return x
    except TypeError as error:
        return x + 1, str(error)


@differential(lambda: (torch.ones(2), [1, 2]))
def test_truth_of_a_comparison_in_a_loop_in_a_try(x, items):
    told = []
    for nothing in (1, x):
        try:
            for item in items:
                if nothing == item:  # no truth value where it is a tensor; 3.13 does not cover this jump, but what is before it
                    told.append(item)
        except RuntimeError as error:
            told.append(str(error))
    return x + 1, told


@differential(lambda: (torch.ones(2),))
def test_exc_info(x):
    told = [sys.exc_info()]
    try:
        raise KeyError(1)
    except KeyError as error:
        kind, value, trace = sys.exc_info()
        told += [kind is KeyError, value is error, trace.tb_lineno > 0]
        try:
            raise ValueError
        except ValueError:
            told.append(sys.exc_info()[0] is ValueError)
        told.append(sys.exc_info()[1] is error)
    return x + 1, told, sys.exc_info()


def test_exc_info_of_the_caller():
    compiled = framegraft.compile(lambda x: (x + 1, sys.exc_info()[0]), backend="eager")
    for _ in range(3):
        assert compiled(torch.ones(2))[1] is None
        try:
            raise KeyError
        except KeyError:
            assert compiled(torch.ones(2))[1] is KeyError
