"""Rules of the instructions: stack, names, attributes, items, calls, generators."""

from __future__ import annotations

import inspect
import operator
import types

from ..bytecode.code import qualified_name
from ..bytecode.ir import Instruction
from ..errors import GraphBreak, UserRaise
from ..model.value import (
    MISSING,
    CellVariable,
    FunctionVariable,
    VariableTracker,
    constant,
)
from ..semantics import core, lookup
from .frame import ORIGIN, origin_of, rule
from .frame import InstructionTranslator as Tx
from .letting_go import goes_to_stack, let_go
from .state import realize, user_error
from .words import unbound_error


@rule("POP_TOP")
def pop_top(tx: Tx, inst: Instruction) -> None:
    let_go(tx, tx.stack[-1])
    tx.stack.pop()


@rule("COPY")
def copy(tx: Tx, inst: Instruction) -> None:
    tx.stack.append(tx.stack[-inst.arg])


@rule("SWAP")
def swap(tx: Tx, inst: Instruction) -> None:
    stack, n = tx.stack, inst.arg
    stack[-1], stack[-n] = stack[-n], stack[-1]


@rule("LOAD_CONST")
def load_const(tx: Tx, inst: Instruction) -> None:
    value = inst.arg
    if type(value) in (tuple, frozenset, type):
        tx.stack.append(core.wrap_constant(value))
    else:
        tx.stack.append(constant(value))


def _unbound(name: str, free: bool = False) -> UserRaise:
    error = unbound_error(name, free)
    members = {"name": constant(name)} if free else {}
    return UserRaise(user_error(type(error), *error.args, **members))


@rule("LOAD_FAST")
def load_fast(tx: Tx, inst: Instruction) -> None:
    try:
        tx.stack.append(tx.locals[inst.arg])
    except KeyError:
        raise _unbound(inst.arg) from None


@rule("STORE_FAST")
def store_fast(tx: Tx, inst: Instruction) -> None:
    let_go(tx, tx.locals.get(inst.arg))
    tx.locals[inst.arg] = tx.stack.pop()


@rule("DELETE_FAST")
def delete_fast(tx: Tx, inst: Instruction) -> None:
    tracker = tx.locals.get(inst.arg)
    if tx.stack and tx.stack[-1] is tracker:  # as where a rest takes what it was given onto its stack
        goes_to_stack(tx, tracker)
    else:
        let_go(tx, tracker)
    if tx.locals.pop(inst.arg, None) is None:
        raise _unbound(inst.arg)


def _cell_contents(tx: Tx, name: str) -> VariableTracker:
    cell = tx.cells[name]
    value = core.cell_contents(tx, cell)
    if value is MISSING:
        raise _unbound(name, name in origin_of(tx.code).co_freevars)
    return value


@rule("LOAD_DEREF")
def load_deref(tx: Tx, inst: Instruction) -> None:
    tx.stack.append(_cell_contents(tx, inst.arg))


@rule("STORE_DEREF")
def store_deref(tx: Tx, inst: Instruction) -> None:
    cell = tx.cells[inst.arg]
    let_go(tx, cell.contents)
    core.store_cell(tx, cell, tx.stack.pop())


@rule("DELETE_DEREF")
def delete_deref(tx: Tx, inst: Instruction) -> None:
    let_go(tx, _cell_contents(tx, inst.arg))
    core.store_cell(tx, tx.cells[inst.arg], MISSING)


@rule("LOAD_CLOSURE")
def load_closure(tx: Tx, inst: Instruction) -> None:
    tx.stack.append(tx.cells[inst.arg])


@rule("STORE_CELL")
def store_cell_slot(tx: Tx, inst: Instruction) -> None:
    cell = tx.pop()
    if not isinstance(cell, CellVariable):
        raise GraphBreak("unsupported_opcode", "STORE_CELL of something other than a cell")
    tx.cells[inst.arg] = cell


@rule("MAKE_CELL")
def make_cell(tx: Tx, inst: Instruction) -> None:
    tx.cells[inst.arg] = CellVariable(MISSING)


@rule("LOAD_GLOBAL")
def load_global(tx: Tx, inst: Instruction) -> None:
    tx.stack.append(core.load_global(tx, tx.scope, inst.arg))


@rule("STORE_GLOBAL")
def store_global(tx: Tx, inst: Instruction) -> None:
    core.check_written(tx, tx.scope.real, inst.arg)
    tx.scope.store(inst.arg, tx.stack.pop())
    tx.state.changed(None)


@rule("DELETE_GLOBAL")
def delete_global(tx: Tx, inst: Instruction) -> None:
    core.delete_global(tx, tx.scope, inst.arg)


@rule("LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_BUILD_CLASS", "IMPORT_FROM_STAR", "LOAD_LOCALS")
def class_body(tx: Tx, inst: Instruction) -> None:
    raise GraphBreak("unsupported_opcode", f"{inst.op} (a class definition)")


@rule("LOAD_ATTR")
def load_attr(tx: Tx, inst: Instruction) -> None:
    let_go(tx, tx.stack[-1])
    tx.stack.append(core.get_attr(tx, tx.pop(), inst.arg))


@rule("STORE_ATTR")
def store_attr(tx: Tx, inst: Instruction) -> None:
    obj = tx.asked = tx.pop()
    core.set_attr(tx, obj, inst.arg, tx.stack.pop())


@rule("DELETE_ATTR")
def delete_attr(tx: Tx, inst: Instruction) -> None:
    core.del_attr(tx, tx.pop(), inst.arg)


@rule("APPLY")
def apply(tx: Tx, inst: Instruction) -> None:
    fn, n = inst.arg
    args = tx.popn(n)
    state = tx.state
    operands = [realize(a, state) for a in args]
    tx.asked = operands[0] if fn is operator.getitem else None
    tx.stack.append(core.apply(tx, fn, operands))


@rule("STORE_SUBSCR")
def store_subscr(tx: Tx, inst: Instruction) -> None:
    value, obj, key = tx.popn(3)
    tx.asked = realize(obj, tx.state)
    core.set_item(tx, tx.asked, realize(key, tx.state), value)


@rule("DELETE_SUBSCR")
def delete_subscr(tx: Tx, inst: Instruction) -> None:
    obj, key = tx.popn(2)
    tx.asked = realize(obj, tx.state)
    core.del_item(tx, tx.asked, realize(key, tx.state))


@rule("FORMAT_VALUE")
def format_value(tx: Tx, inst: Instruction) -> None:
    conversion, has_spec = inst.arg
    spec = tx.pop() if has_spec else constant("")
    value = tx.pop()
    tx.stack.append(core.format_value(tx, value, conversion, spec))


@rule("BUILD_STRING")
def build_string(tx: Tx, inst: Instruction) -> None:
    parts = [core.need_constant(realize(p, tx.state), "a part of an f-string") for p in tx.popn(inst.arg)]
    tx.stack.append(constant("".join(parts)))


@rule("FOR_ITER")
def for_iter(tx: Tx, inst: Instruction) -> None:
    iterator = realize(tx.stack[-1], tx.state)
    item = core.next_item(tx, iterator)
    if item is None:
        tx.stack.pop()
        tx.jump(inst.target)
    else:
        tx.stack.append(item)


@rule("CALL")
def call(tx: Tx, inst: Instruction) -> None:
    npos, names = inst.arg
    values = tx.popn(npos + len(names))
    fn = tx.pop()
    tx.operands, tx.marks = [fn, *values], tx.state.marks()
    kwargs = dict(zip(names, values[npos:], strict=True)) if names else {}
    tx.state.waiting, tx.drops = tx.breakable, False
    tx.stack.append(core.call(tx, fn, values[:npos], kwargs))


@rule("CALL_EX")
def call_ex(tx: Tx, inst: Instruction) -> None:
    kwargs: dict[str, VariableTracker] = {}
    if inst.arg:
        for key, value in core.mapping_items(tx, tx.pop()):
            name = core.need_constant(key, "a keyword name")
            if not isinstance(name, str):
                raise GraphBreak("raised_exception", "a keyword that is no string")
            kwargs[name] = value
    args = _arguments(tx, realize(tx.pop(), tx.state))
    fn = tx.pop()
    tx.state.waiting, tx.drops = tx.breakable, False
    tx.stack.append(core.call(tx, fn, args, kwargs))


def _arguments(tx: Tx, value: VariableTracker) -> list[VariableTracker]:
    """What comes from ``*value`` (check_args_iterable, whose text names the function)."""
    if not any(lookup.defines(value.python_type(), name) for name in ("__iter__", "__getitem__")):
        raise GraphBreak("raised_exception", "* of something that is not iterable")
    return core.unpack_iterable(tx, value)


@rule("MAKE_FUNCTION")
def make_function(tx: Tx, inst: Instruction) -> None:
    code = core.need_constant(tx.pop(), "code")
    fn = FunctionVariable(code, tx.scope, qualified_name(code))
    if inst.arg & 8:
        fn.closure = [realize(c, tx.state) for c in core.sequence_items(tx, tx.pop())]  # type: ignore[misc]
    if inst.arg & 4:
        fn.annotations = tx.pop()
    if inst.arg & 2:
        fn.kwdefaults = tx.pop()
    if inst.arg & 1:
        fn.defaults = tx.pop()
    tx.stack.append(fn)


@rule("IMPORT_NAME")
def import_name(tx: Tx, inst: Instruction) -> None:
    fromlist = core.need_constant_deep(tx.pop())
    level = core.need_constant(tx.pop(), "import level")
    tx.stack.append(core.import_module(tx, inst.arg, fromlist, level))


@rule("IMPORT_FROM")
def import_from(tx: Tx, inst: Instruction) -> None:
    module = realize(tx.stack[-1], tx.state)
    try:
        tx.stack.append(core.get_attr(tx, module, inst.arg))
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), AttributeError):  # eager mode looks in sys.modules, and words an ImportError
            raise GraphBreak("raised_exception", f"{inst.arg} imported from a module that does not have it") from None
        raise


@rule("RETURN_VALUE")
def return_value(tx: Tx, inst: Instruction) -> tuple[str, VariableTracker]:
    if id(tx.code) in ORIGIN and tx is not tx.state.root:  # the rest of a frame: its variables come from outside
        for held in (*tx.locals.values(), *(cell.contents for cell in tx.cells.values())):
            let_go(tx, held)
    return ("return", tx.stack.pop())


@rule("RETURN_GENERATOR")
def return_generator(tx: Tx, inst: Instruction) -> None:
    return None


@rule("YIELD_VALUE")
def yield_value(tx: Tx, inst: Instruction) -> tuple[str, VariableTracker]:
    return ("yield", tx.stack.pop())


@rule("GET_YIELD_FROM_ITER")
def get_yield_from_iter(tx: Tx, inst: Instruction) -> None:
    value = tx.pop()
    if issubclass(value.python_type(), types.CoroutineType):
        if tx.code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE):
            raise GraphBreak("untraceable_call", "a coroutine")
        raise UserRaise(user_error(TypeError, "cannot 'yield from' a coroutine object in a non-coroutine generator"))
    tx.stack.append(core.apply(tx, iter, [value]))


@rule("SEND")
def send(tx: Tx, inst: Instruction) -> None:
    value = tx.stack.pop()
    done, result = core.send(tx, realize(tx.stack[-1], tx.state), realize(value, tx.state))
    if done:
        tx.stack.pop()
        tx.stack.append(result)
        tx.jump(inst.target)
    else:
        tx.stack.append(result)


@rule("INTRINSIC", "PRINT_EXPR", "SETUP_ANNOTATIONS", "GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "BEFORE_ASYNC_WITH")
def intrinsic(tx: Tx, inst: Instruction) -> None:
    raise GraphBreak("unsupported_opcode", f"{inst.op} {inst.arg or ''}")

