"""Rules of the instructions of ``match`` statements."""

from __future__ import annotations

from ..bytecode.ir import Instruction
from ..errors import GraphBreak, UserRaise
from ..model.value import (
    NONE,
    DictVariable,
    ObjectVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..semantics import core
from .frame import InstructionTranslator as Tx
from .frame import rule
from .state import realize, user_error


@rule("MATCH_SEQUENCE", "MATCH_MAPPING")
def match_kind(tx: Tx, inst: Instruction) -> None:
    flag = 1 << 5 if inst.op == "MATCH_SEQUENCE" else 1 << 6
    cls = realize(tx.stack[-1], tx.state).python_type()
    tx.stack.append(constant(bool(cls.__flags__ & flag)))


@rule("MATCH_KEYS")
def match_keys(tx: Tx, inst: Instruction) -> None:
    keys = core.sequence_items(tx, realize(tx.stack[-1], tx.state))
    subject = realize(tx.stack[-2], tx.state)
    if not isinstance(subject, DictVariable):
        raise GraphBreak("unsupported_opcode", "match on a mapping that is no dict")
    values = []
    seen: set = set()
    for key in keys:
        hashed = core.hash_key(tx, realize(key, tx.state))
        if hashed in seen:
            raise UserRaise(user_error(ValueError, f"mapping pattern checks duplicate key ({hashed!r})"))
        seen.add(hashed)
        found = core.dict_get(tx, subject, realize(key, tx.state))
        if found is None:
            tx.stack.append(NONE)
            return
        values.append(found)
    tx.stack.append(TupleVariable(values))


@rule("MATCH_CLASS")
def match_class(tx: Tx, inst: Instruction) -> None:
    names = core.need_constant_deep(tx.pop())
    cls, subject = tx.pop(), None
    subject = tx.pop()
    if not isinstance(cls, ObjectVariable) or not issubclass(type(cls.value), type):
        raise GraphBreak("unsupported_opcode", "match on a class that is no type")
    if not core.truth(tx, core.call(tx, core.wrap_constant(isinstance), [subject, cls], {})):
        tx.stack.append(NONE)
        return
    values: list[VariableTracker] = []
    npos = inst.arg
    if npos:
        match_args = _match_args(tx, cls)
        match_self = match_args is None and bool(cls.value.__flags__ & MATCH_SELF)
        match_args = match_args or ()
        allowed = 1 if match_self else len(match_args)
        if npos > allowed:
            plural = "" if allowed == 1 else "s"
            text = f"{cls.value.__name__}() accepts {allowed} positional sub-pattern{plural} ({npos} given)"
            raise UserRaise(user_error(TypeError, text))
        if match_self:
            values.append(subject)
        names = _match_names(cls.value, match_args[:npos], names)
    for name in names:
        try:
            values.append(core.get_attr(tx, subject, name))
        except UserRaise as raised:
            if not issubclass(raised.value.python_type(), AttributeError):
                raise
            tx.stack.append(NONE)
            return
    tx.stack.append(TupleVariable(values))


MATCH_SELF = 1 << 22  # _Py_TPFLAGS_MATCH_SELF


def _match_args(tx: Tx, cls: ObjectVariable) -> tuple | None:
    try:
        found = realize(core.get_attr(tx, cls, "__match_args__"), tx.state)
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return None
        raise
    if not isinstance(found, TupleVariable):
        text = f"{cls.value.__name__}.__match_args__ must be a tuple (got {found.python_type().__name__})"
        raise UserRaise(user_error(TypeError, text))
    return core.need_constant_deep(found)


def _match_names(cls: type, positional: tuple, keywords: tuple) -> tuple:
    """The attributes to read, in order (CPython: match_class)."""
    for name in positional:
        if not isinstance(name, str):
            text = f"__match_args__ elements must be strings (got {type(name).__name__})"
            raise UserRaise(user_error(TypeError, text))
    names = (*positional, *keywords)
    for index, name in enumerate(names):
        if name in names[:index]:
            raise UserRaise(user_error(TypeError, f"{cls.__name__}() got multiple sub-patterns for attribute {name!r}"))
    return names
