"""A break inside of functions that the trace has entered: it makes two graphs, however deep it is, and changes nothing else."""

import contextlib
import gc
import sys
import warnings
import weakref

import pytest
import torch
import torch._dynamo.utils

from .differential import IDENTITY, differential

if not IDENTITY:
    import framegraft


def graph_break(n=0):
    """A break the user asks for; nothing in eager mode."""
    if not IDENTITY:
        framegraft.graph_break()


def unseen(fn):
    return fn if IDENTITY else framegraft.disable(fn)


@unseen
def outside(n):
    if n < 0:
        raise KeyError(n)
    return n + 0.5


@unseen
def names(depth):
    """Of the functions that have called this one; those of one frame once, which CPython 3.10 shows for each resume function."""
    frame, found = sys._getframe(1), []
    while frame is not None and len(found) < depth:
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name not in found[-1:]:
            found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found


@unseen
def seen_by(name):
    """A variable of the caller's."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename != __file__:
        frame = frame.f_back
    return frame.f_locals[name]


def innermost(x):
    y = x + 1
    graph_break()
    return y * 2


def second(x):
    return innermost(x - 1) + 1


def third(x, scale=2):
    y = x.sin()
    return second(y) * scale + y


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.inner = torch.nn.Sequential(Layer(), torch.nn.ReLU(), Layer())
        self.head = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.inner(x) + x)


class Layer(torch.nn.Linear):
    def __init__(self):
        super().__init__(3, 3)
        self.calls = 0

    def forward(self, x):
        y = super().forward(x)
        self.calls += 1
        graph_break()
        return y.tanh() + self.calls


@differential(graphs=2)
def test_four_deep(x):
    return third(x) + 1


@differential(lambda: (Model(), torch.ones(3)), graphs=3)
def test_two_layers_that_are_interrupted(model, x):
    return model(x).sum()


TABLE = torch._dynamo.utils.ExactWeakKeyDictionary()


def known_to_torch_compile():
    """Once torch.compile is loaded it has a table of all modules, whose entries go with them."""
    model = Model()
    for module in model.modules():
        TABLE[module] = 1
    return model, torch.ones(3)


@differential(known_to_torch_compile, graphs=3)
def test_modules_that_torch_compile_knows(model, x):
    return model(x).sum()


def by_sign(x):
    if x.sum() > 0:
        return x * 2
    return x * 3


@differential(graphs=3)
def test_branches_on_values(x):
    a = by_sign(x + 1)
    return a - by_sign(a - 100)


def decides(x, n):
    y = x.cos()
    z = y + 1 if (y > n).any() else y - 1
    return z if not (z > 0).all() else -z


@differential(lambda: (torch.arange(1.0, 4.0), 2))
def test_a_branch_that_changes(x, n):
    return [decides(x * i, n - i) + i for i in range(4)]


def keeps_stack(x):
    return [x + 1, {"k": x * 2, "f": outside(1)}, (outside(2), x - 1)]


@differential(graphs=2)
def test_values_on_the_stacks(x):
    return x, x * 3, keeps_stack(x + 1), [outside(3) if False else x]


def calls_outside(x, n):
    y = x + 1
    return y * outside(n)


def hands_on(x, n):
    return calls_outside(x, n) + 1


def handles(x, n):
    try:
        return hands_on(x, n) * 2
    except KeyError as error:
        return x - error.args[0]


def cleans_up(x, n, notes):
    try:
        y = handles(x, n) if n > -5 else hands_on(x, n)
        notes.append("fine")
    finally:
        notes.append(n)
    return y * 3


@differential(lambda: (torch.ones(3), []), graphs=2)
def test_a_handler_around_what_does_not_fail(x, notes):
    return cleans_up(x, 2, notes), notes


@differential(lambda: (torch.ones(3), []))
def test_a_handler_around_what_fails(x, notes):
    return cleans_up(x, -2, notes), notes


@differential(lambda: (torch.ones(3), []))
def test_nothing_handles_what_fails(x, notes):
    return cleans_up(x, -7, notes), notes


def fails_behind(x, n):
    y = x + 1
    graph_break()
    if n:
        raise ValueError(n)
    return y * 2


@differential()
def test_an_error_of_the_rest(x):
    found = []
    for n in range(3):
        try:
            found.append(fails_behind(x, n) + 1)
        except ValueError as error:
            found.append(error.args)
    return found


def under_modes(x):
    with torch.no_grad():
        y = calls_outside(x, 1)
        modes = [torch.is_grad_enabled()]
    return y * x, modes


@differential(lambda: (torch.ones(3, requires_grad=True),), graphs=2)
def test_modes_around_the_call(x):
    y, modes = under_modes(x * 2)
    return y + 1, modes, torch.is_grad_enabled()


@contextlib.contextmanager
def noted(notes, name):
    notes.append("enter " + name)
    try:
        yield
    except KeyError:
        notes.append("failed " + name)
        raise
    finally:
        notes.append("leave " + name)


def in_managers(x, n, notes):
    with noted(notes, "outer"):
        with noted(notes, "inner"), contextlib.suppress(ZeroDivisionError):
            y = calls_outside(x, n)
            notes.append(tuple(y.shape))
        return y + 1


@differential(lambda: (torch.ones(3), []))
def test_managers_around_the_call(x, notes):
    return in_managers(x * 2, 1, notes) + 1, notes


@differential(lambda: (torch.ones(3), []))
def test_managers_around_a_call_that_fails(x, notes):
    return in_managers(x * 2, -1, notes) + 1, notes


def stores(obj, x):
    obj["y"] = x + 1
    graph_break()
    obj["y"] = obj["y"] * 2
    obj["z"] = len(obj)
    return obj


@differential(lambda: (torch.ones(3), {}), graphs=2)
def test_changes_on_both_sides(x, table):
    found = stores(table, x)
    return found is table, table["y"] + 1, table


def with_cells(x):
    total = x * 2
    count = 0

    def add(y):
        nonlocal total, count
        count += 1
        total = total + y
        graph_break()
        count += 1
        return total * count

    return add(x) + add(x + 1), lambda: total, count


@differential()
def test_variables_with_cells(x):
    y, total, count = with_cells(x + 1)
    return y + 1, total(), count


def looks_at_frames(x, mine):
    y = x + 1
    found = seen_by("mine"), names(3), seen_by("y")
    return y * 2, found, names(3), mine


@differential()
def test_what_is_called_sees_the_frame(x):
    return looks_at_frames(x + 1, "own")


def repeats(x, n):
    for i in range(n):
        x = x + i
        graph_break()
        x = x * 2
    return x


@differential(graphs=4)
def test_a_loop_in_the_callee(x):
    return repeats(x - 1, 3) + 1


@differential(graphs=4)
def test_a_loop_in_the_caller(x):
    found = []
    for i in range(3):
        found.append(innermost(x + i))
    return found


def writes_and_looks_up(x, index):
    y = x * 2
    graph_break()
    y.add_(1)
    x.add_(1)
    return y[index] + x[index]


def handles_errors(x, index):
    try:
        return writes_and_looks_up(x, index)
    except IndexError:
        return x


@differential(lambda: (torch.ones(3), torch.tensor([2, 0])))
def test_what_may_raise_and_cannot_run_twice(x, index):
    return handles_errors(x, index) + 1, x


@differential(lambda: (torch.ones(3), torch.tensor([7, 0])))
def test_what_raises_and_cannot_run_twice(x, index):
    return handles_errors(x, index) + 1, x


def draws(x, n):
    for i in range(n):
        graph_break()
        yield x * i


@differential()
def test_a_generator_between(x):
    return sum(innermost(y) for y in draws(x, 3)) + 1


def reads_attributes(obj):
    return obj.value * 2


class Computed:
    def __init__(self, x):
        self.x = x

    @property
    def value(self):
        graph_break()
        return self.x + 1


@differential(lambda: (Computed(torch.ones(3)),))
def test_a_property_that_is_interrupted(obj):
    return reads_attributes(obj) + reads_attributes(obj)


def formats(x):
    y = x + 1
    return f"{y}", y * 2


def subscripts(items, x):
    y = x * 2
    items[int(x.sum())] = y
    return y + 1, items[int(y.sum()) - 6]


@differential(lambda: (torch.ones(3), [0] * 4))
def test_instructions_of_other_kinds(x, items):
    return formats(x - 1), subscripts(items, x), items


def imports(x):
    y = x + 1
    import xdrlib_that_is_not_there_1 as found  # type: ignore[import-not-found]
    return y, found


def imports_or_not(x):
    try:
        return imports(x)
    except ImportError as error:
        return x - 1, error.name


@differential()
def test_an_import_that_fails(x):
    return imports_or_not(x + 1)[0] * 2, imports_or_not(x)[1]


@differential(lambda: (torch.ones(3),))
def test_recursion(x):
    def down(y, n):
        if n == 0:
            graph_break()
            return y
        return down(y + n, n - 1) * 2

    return down(x, 5) + 1


class Opened:
    """A context manager that breaks the graph where it is entered, and where it is left."""

    def __init__(self, notes, fails=False):
        self.notes = notes
        self.fails = fails

    def __enter__(self):
        outside(-1 if self.fails else 1)
        self.notes.append("enter")
        return self.notes

    def __exit__(self, *error):
        outside(2)
        self.notes.append(error[0])


def opens(x, notes, fails=False):
    y = x + 1
    with Opened(notes, fails) as inside:
        y = y * len(inside)
        if x.sum() > 100:
            raise KeyError("too much")
    return y - 1


@differential(lambda: (torch.ones(3), []), graphs=3)
def test_a_manager_that_is_interrupted(x, notes):
    return opens(x, notes) + 1, notes


@differential(lambda: (torch.ones(3) * 50, []))
def test_a_manager_around_what_fails(x, notes):
    try:
        return opens(x, notes) + 1, notes
    except KeyError as error:
        return x, error.args, notes


@differential(lambda: (torch.ones(3), []))
def test_a_manager_that_cannot_be_entered(x, notes):
    try:
        return opens(x, notes, True) + 1, notes
    except KeyError as error:
        return x, error.args, notes


class Locked:
    """What cannot be traced: the instruction that enters it is the one that breaks the graph."""

    def __enter__(self):
        return print("enter") or 3

    def __exit__(self, *error):
        print("exit", error[0])


if not IDENTITY:
    Locked.__enter__ = framegraft.disable(Locked.__enter__)
    Locked.__exit__ = framegraft.disable(Locked.__exit__)


def locks(x):
    y = x + 1
    with Locked() as n:
        y = y * n
    return y - 1


@differential()
def test_a_manager_that_cannot_be_traced(x):
    return locks(x) + 1


class Backend:
    def __call__(self, gm, inputs):
        return gm.forward


@pytest.mark.skipif(IDENTITY, reason="about captures")
def test_nothing_is_left():
    """The functions that a break makes, and their names, go with the entries that use them, and the backend with them."""
    framegraft.reset()
    before = {name for name in globals() if name.startswith("__")}
    backend = Backend()
    known = weakref.ref(backend)
    framegraft.compile(third, backend=backend)(torch.ones(3))
    assert {name[:7] for name in globals().keys() - before if name.startswith("__")} >= {"__compi", "__resum", "__step_"}
    del backend
    framegraft.reset()
    gc.collect()
    assert known() is None
    assert {name for name in globals() if name.startswith("__")} == before


def asks_who(x):
    y = x + 1
    found = names(6), seen_lines(6)
    return y * 2, found


@unseen
def seen_lines(depth):
    frame, found = sys._getframe(1), []
    while frame is not None and len(found) < depth:
        if frame.f_code.co_filename == __file__:
            found.append((frame.f_code.co_name, frame.f_lineno, frame.f_globals["__name__"]))
        frame = frame.f_back
    return found if sys.version_info >= (3, 11) else None


def passes_on(x):
    return asks_who(x)


def does_more(x):
    y, found = passes_on(x * 2)
    return y + 1, found


@differential(graphs=2)
def test_all_callers_are_seen(x):
    return does_more(x), x * 2


@unseen
def warns(level):
    warnings.warn("told", stacklevel=level)
    return level


def warned_of(x, level):
    y = x + 1
    return y * warns(level)


def hands_on(x, level):
    return warned_of(x, level) + 1


@differential(lambda: (torch.ones(3), 2))
def test_the_line_that_is_warned_of(x, level):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        y = hands_on(x, level) + hands_on(x, level + 1) + hands_on(x, level + 2)
    return y, [(w.filename == __file__, w.lineno) for w in told]


def fails_below(x, n):
    y = x + 1
    outside(n)
    return y * 2


def hands_on_what_fails(x, n):
    return fails_below(x, n)


def catches(x, n):
    try:
        return hands_on_what_fails(x, n) + 1
    except KeyError as error:
        return x + 3, passed(error.__traceback__)


@unseen
def passed(trace):
    found = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == __file__:
            found.append((trace.tb_frame.f_code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    return found


@differential(lambda: (torch.ones(3), -1))
def test_the_traceback_in_a_handler(x, n):
    return catches(x * 2, n)
