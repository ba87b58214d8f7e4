"""Resume functions as a person would write them: the rest of a loop's round first, then the loop.

A resume function jumps into the middle of the original code with the values that lay on the stack there, iterators of
``for`` loops at the bottom. Here the code of the interrupted round is copied, and what lies at the bottom is pushed only
where the loop goes on. The result does the same, and the compiler could have made it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType
from typing import Any

from ..bytecode.code import RESUME, qualified_name
from ..bytecode.decode import decode
from ..bytecode.flow import NO_FALLTHROUGH, remove_unreachable, stack_depths, stack_use
from ..bytecode.ir import ExceptionHandler, Instruction
from ..errors import DecompileError
from . import runtime


def is_resume(code: CodeType) -> bool:
    """Whether ``code`` is a resume function, or was made of one: its name is the program's, the qualified name tells."""
    return qualified_name(code).startswith("<resume in ")


def untangled(code: CodeType) -> Iterator[list[Instruction]]:
    """Instructions that do the same as a resume function's, most promising first; none for other code."""
    if not is_resume(code):
        return
    try:
        noting, insts, cells, helpers = _parts(code)
    except DecompileError:
        return
    count = _pushed(insts)
    insts = _with_call_in_place(insts, count)
    jump = insts[count]
    if jump.op != "JUMP" or jump.target is None:
        return
    if cells:
        first, skipped = _restored(range(count), jump.target, insts)
        if skipped:
            jump.target = insts[jump.target.index + 1]
        yield _importing(helpers, noting, remove_unreachable(first + insts[count:]))
        noting, insts, _, _ = _parts(code)  # who takes instructions may change them
        insts = _with_call_in_place(insts, count)
    for left_out in range(count, -1, -1):
        try:
            yield _importing(helpers, noting, _Copier(insts, count, left_out).run())
        except DecompileError:
            continue


def _parts(code: CodeType) -> tuple[list[Instruction], list[Instruction], dict[str, str], set[str]]:
    """What notes the frame, where the code does that, and the rest as ``_without_cells`` gives it."""
    noting, rest = _noting(remove_unreachable(decode(code)))
    insts, cells, helpers = _without_cells(_without_moves(rest))
    return noting, insts, cells, helpers | {"note_frame"} if noting else helpers


def _noting(insts: list[Instruction]) -> tuple[list[Instruction], list[Instruction]]:
    """``__note_frame(___rest); del ___rest`` and the rest of the code."""
    if insts[0].op != "LOAD_CONST" or insts[0].arg is not runtime.note_frame:
        return [], insts
    _instead(insts[0], ("LOAD_FAST", "__note_frame"))
    return insts[:5], remove_unreachable(insts[5:])


def _without_moves(insts: list[Instruction]) -> list[Instruction]:
    """The code with a prologue that leaves in their variables what it puts onto the stack and into cells."""
    count = 0
    while insts[count].op in ("LOAD_FAST", "DELETE_FAST", "STORE_CELL"):
        count += 1
    return remove_unreachable([inst for inst in insts[:count] if inst.op != "DELETE_FAST"] + insts[count:])


def _pushed(insts: list[Instruction]) -> int:
    """How many entries of the stack are restored first."""
    count = 0
    while insts[count].op == "LOAD_FAST" and insts[count].arg == f"___stack{count}":
        count += 1
    return count


def _with_call_in_place(insts: list[Instruction], count: int) -> list[Instruction]:
    """The code with the call of a callee's rest, which the prologue makes behind ``count`` entries of the stack, in the place where the
    frame goes on: in the loops and blocks around that."""
    if insts[count].op != "LOAD_GLOBAL" or not insts[count].arg.startswith(RESUME):
        return insts
    end = count + 1
    while insts[end].op in ("LOAD_FAST", "DELETE_FAST"):
        end += 1
    handler, is_call = insts[end].handler, insts[end].op == "CALL"
    end += 1 + (insts[end + 1].op == "POP_TOP")  # the frame waits for no value
    if not is_call or insts[end].op != "JUMP":  # it goes on with what comes next
        return insts
    target = insts[end].target
    call = [inst for inst in insts[count:end] if inst.op != "DELETE_FAST"]
    for inst in call:
        inst.handler = handler
    first = _like(insts[end], "JUMP", None)
    first.target = call[0]
    assert target is not None
    at = target.index
    return remove_unreachable([*insts[:count], first, *insts[end + 1 : at], insts[end], *call, *insts[at:]])


def _restored(entries: range, start: Instruction, insts: list[Instruction]) -> tuple[list[Instruction], bool]:
    """What puts the ``entries`` onto the stack, which is to hold them alone; with it whether ``start`` is done already, because it
    takes the last one off again."""
    out: list[Instruction] = []
    done = bool(entries) and start.op in ("POP_TOP", "STORE_FAST")
    if done:
        last = f"___stack{entries[-1]}"
        stored = [("LOAD_FAST", last), ("STORE_FAST", start.arg)] if start.op == "STORE_FAST" else []
        out += [_like(insts[0], op, arg) for op, arg in [*stored, ("DELETE_FAST", last)]]
        entries = entries[:-1]
    for k in entries:
        out += [_like(insts[0], op, arg) for op, arg in moved(f"___stack{k}")]
    return out, done


def moved(name: str) -> list[tuple[str, Any]]:
    """``(name, (name := None))[0]``, which leaves the object to the stack alone."""
    return [("LOAD_FAST", name), ("LOAD_CONST", None), ("COPY", 1), ("STORE_FAST", name), ("BUILD_TUPLE", 2), ("LOAD_CONST", 0),
            ("APPLY", (operator.getitem, 2))]


_CELL_OPS = {"LOAD_DEREF": "value_of", "DELETE_DEREF": "unbind"}  # -> the function of ``runtime``


def _without_cells(insts: list[Instruction]) -> tuple[list[Instruction], dict[str, str], set[str]]:
    """The code without the variables of which the cells are parameters: the cells' contents instead.

    With it the parameters of these variables, and what the code calls for those that may have no value.
    """
    helpers: set[str] = set()
    cells: dict[str, str] = {}
    while insts[2 * len(cells)].op == "LOAD_FAST" and insts[2 * len(cells) + 1].op == "STORE_CELL":
        load, stored = insts[2 * len(cells) : 2 * len(cells) + 2]
        cells[stored.arg] = load.arg
    out: list[Instruction] = []
    for inst in insts[2 * len(cells) :]:
        if inst.arg not in cells or not inst.op.endswith(("_DEREF", "_CLOSURE")):
            out.append(inst)
            continue
        cell = ("LOAD_FAST", cells[inst.arg])
        if inst.op == "STORE_DEREF":
            out += _instead(inst, cell, ("STORE_ATTR", "cell_contents"))
            continue
        if inst.op not in _CELL_OPS:
            raise DecompileError("a function is made with a given cell")
        helper = _CELL_OPS[inst.op]
        helpers.add(helper)
        drop = [("POP_TOP", None)] if helper == "unbind" else []
        out += _instead(inst, ("LOAD_FAST", f"__{helper}"), cell, ("LOAD_CONST", inst.arg), ("CALL", (2, ())), *drop)
    return remove_unreachable(out), cells, helpers


def _instead(inst: Instruction, *operations: tuple[str, Any]) -> list[Instruction]:
    """``operations`` in the place of ``inst``, which becomes the first of them."""
    rest = [_like(inst, op, arg) for op, arg in operations[1:]]
    inst.op, inst.arg = operations[0]
    return [inst, *rest]


def _like(inst: Instruction, op: str, arg: Any) -> Instruction:
    """A new instruction at the place of ``inst``."""
    made = Instruction(op, arg)
    made.offset, made.positions, made.handler = inst.offset, inst.positions, inst.handler
    return made


def _importing(helpers: set[str], noting: list[Instruction], insts: list[Instruction]) -> list[Instruction]:
    """``from runtime import helper as __helper``, and then the others."""
    insts = noting + insts
    if not helpers:
        return insts
    names = tuple(sorted(helpers))
    operations = [("LOAD_CONST", 0), ("LOAD_CONST", names), ("IMPORT_NAME", runtime.__name__)]
    for name in names:
        operations += [("IMPORT_FROM", name), ("STORE_FAST", f"__{name}")]
    first = [_like(insts[0], op, arg) for op, arg in [*operations, ("POP_TOP", None)]]
    for inst in first:
        inst.handler = None
    return remove_unreachable(first + insts)


def _without_jumps_to_the_next(insts: list[Instruction]) -> list[Instruction]:
    idle = {id(inst) for inst, after in pairwise(insts) if inst.op == "JUMP" and inst.target is after}

    def behind(inst: Instruction) -> Instruction:
        while id(inst) in idle:
            inst = inst.target  # type: ignore[assignment]
        return inst

    for inst in insts:
        if inst.target is not None:
            inst.target = behind(inst.target)
        if inst.handler is not None:
            inst.handler.target = behind(inst.handler.target)
    return [inst for inst in insts if id(inst) not in idle]


class _Copier:
    """Copies of instructions, by (index, entries left out at the bottom of the stack, whether in the interrupted round)."""

    def __init__(self, insts: list[Instruction], count: int, left_out: int) -> None:
        self.insts = insts
        self.depths: list[Any] = stack_depths(insts)
        self.count, self.left_out = count, left_out
        self.start: int = insts[count].target.index  # type: ignore[union-attr]
        self.low, self.high = self._loops()
        self.made: dict[tuple[int, int, bool], list[Instruction]] = {}
        self.todo: list[tuple[int, int, bool]] = []
        self.links: list[tuple[Instruction, tuple[int, int, bool]]] = []
        self.tails: dict[int, list[Instruction]] = {}
        self.exits: dict[tuple[int, int], Instruction] = {}  # handlers of with statements -> what stands for them
        self.handlers: list[tuple[Instruction, tuple[int, int, bool], int, bool]] = []

    def _loops(self) -> tuple[int, int]:
        """The instructions of the loops around the start, as a range; an empty one for none."""
        last: dict[int, int] = {}
        for inst in self.insts:
            to = inst.target
            if to is not None and to.index <= inst.index and to.op != "SEND":
                last[to.index] = max(inst.index, last.get(to.index, 0))
        around = [(header, end) for header, end in last.items() if header <= self.start <= end]
        return min((a for a, _ in around), default=0), max((b for _, b in around), default=-1)

    def run(self) -> list[Instruction]:
        if self.high < 0 and not self.left_out:
            raise DecompileError("in no block")
        out, done = _restored(range(self.left_out, self.count), self.insts[self.start], self.insts)
        out.append(self.fresh("JUMP", None))
        self.links.append((out[-1], self.want(self.start + done, self.left_out, True)))
        while self.todo:
            self.copy(self.todo.pop())
        for left in range(self.left_out, -1, -1):  # what goes on with more on the stack comes later: no jumps back
            keys = [key for key in self.made if key[1] == left]
            for key in sorted(keys, key=lambda key: (not key[2], self.goes_on(*key[:2]), key[0])):
                out += self.made[key]
            out += self.tails.get(left, ())
        for inst, key in self.links:
            inst.target = self.made[key][0]
        for inst, key, depth, lasti in self.handlers:
            inst.handler = ExceptionHandler(self.made[key][0], depth, lasti)
        return remove_unreachable(_without_jumps_to_the_next(out))

    def fresh(self, op: str, arg: Any, like: Instruction | None = None) -> Instruction:
        like = like or self.insts[0]
        made = Instruction(op, arg)
        made.offset, made.positions = like.offset, like.positions
        return made

    def want(self, i: int, left_out: int, first_round: bool) -> tuple[int, int, bool]:
        key = (i, left_out, first_round and self.low <= i <= self.high)
        if key not in self.made:
            self.made[key] = []
            self.todo.append(key)
        return key

    def goes_on(self, i: int, left_out: int) -> bool:
        """Whether a loop goes on at ``i`` with an iterator that was left out."""
        return left_out > 0 and self.depths[i] == left_out and self.insts[i].op == "FOR_ITER"

    def copy(self, key: tuple[int, int, bool]) -> None:
        i, left_out, first_round = key
        inst, out = self.insts[i], self.made[key]
        depth = self.depths[i]

        def go(to: int, left: int) -> None:
            """The way on, as a jump behind the copy."""
            out.append(self.fresh("JUMP", None, inst))
            self.links.append((out[-1], self.want(to, left, first_round and to > i)))

        if self.goes_on(i, left_out):
            out += [self.fresh(op, arg, inst) for op, arg in moved(f"___stack{left_out - 1}")]
            out.append(self.fresh("APPLY", (iter, 1), inst))  # of an iterator, which gives itself
            for made in out:
                self.handled(made, inst, left_out - 1, first_round)
            out.append(self.fresh("JUMP", None, inst))
            self.links.append((out[-1], self.want(i, left_out - 1, False)))
            return
        if left_out and depth == left_out and inst.op == "POP_TOP":
            out.append(self.fresh("DELETE_FAST", f"___stack{left_out - 1}", inst))
            self.handled(out[0], inst, left_out, first_round)
            out.append(self.fresh("JUMP", None, inst))
            self.links.append((out[-1], self.want(i + 1, left_out - 1, first_round)))
            return
        if left_out and depth == left_out and self.calls_exit(i):
            out += [self.fresh(op, arg, inst) for op, arg in moved(f"___stack{left_out - 1}")]
            for made in out:
                self.handled(made, inst, left_out, first_round)
            out.append(self.fresh("JUMP", None, inst))
            self.links.append((out[-1], self.want(i, left_out - 1, first_round)))
            return
        if depth - stack_use(inst, False)[0] < left_out or inst.op in ("LIST_APPEND", "SET_ADD", "MAP_ADD"):
            raise DecompileError("what lies at the bottom of the stack is used")
        made = self.fresh(inst.op, inst.arg, inst)
        out.append(made)
        if inst.target is not None:
            to = inst.target.index
            self.links.append((made, self.want(to, left_out, first_round and to > i)))
        self.handled(made, inst, left_out, first_round)
        if inst.op not in NO_FALLTHROUGH:
            go(i + 1, left_out)

    def handled(self, made: Instruction, inst: Instruction, left_out: int, first_round: bool) -> None:
        """Gives a copy the handler of its original."""
        handler = inst.handler
        if handler is None:
            return
        to = handler.target.index
        if left_out and handler.depth == left_out and self.insts[to + 1].op == "WITH_EXCEPT_START":
            made.handler = ExceptionHandler(self.exit_on_error(to, left_out), 0, False)
            return
        if handler.depth < left_out:
            raise DecompileError("an exception drops what lies at the bottom of the stack")
        left = min(left_out, handler.depth)
        self.handlers.append((made, self.want(to, left, first_round), handler.depth - left, handler.lasti))

    # -- with statements, of which only ``__exit__`` is at hand

    def calls_exit(self, i: int) -> bool:
        """``__exit__(None, None, None)`` at the end of a with statement."""
        parts = self.insts[i : i + 4]
        return [p.op for p in parts] == ["LOAD_CONST"] * 3 + ["CALL"] and all(p.arg is None for p in parts[:3])

    def exit_on_error(self, handler: int, left_out: int) -> Instruction:
        """``except BaseException as error: if not exit(type(error), error, error.__traceback__): raise``."""
        found = self.exits.get((handler, left_out))
        if found is not None:
            return found
        insts = self.insts
        branch = insts[handler + 2]
        cleanup = insts[handler].handler
        if branch.op != "POP_JUMP_IF" or cleanup is None:
            raise DecompileError("a with statement with an unknown handler")
        swallow = branch.target.index if branch.arg == "true" else handler + 3  # type: ignore[union-attr]
        if [inst.op for inst in insts[swallow : swallow + 4]] != ["POP_TOP", "POP_EXCEPT", "POP_TOP", "POP_TOP"]:
            raise DecompileError("a with statement with an unknown handler")
        name = "__error"
        like = insts[handler]
        made = {label: self.fresh(op, arg, like) for label, (op, arg) in {
            "start": ("PUSH_EXC_INFO", None), "kind": ("LOAD_GLOBAL", "BaseException"), "match": ("CHECK_EXC_MATCH", None),
            "other": ("POP_JUMP_IF", "false"), "store": ("STORE_FAST", name),
            **{f"exit{k}": operation for k, operation in enumerate(moved(f"___stack{left_out - 1}"))},
            "type": ("LOAD_GLOBAL", "type"), "error": ("LOAD_FAST", name),
            "call": ("CALL", (1, ())), "error2": ("LOAD_FAST", name), "error3": ("LOAD_FAST", name),
            "traceback": ("LOAD_ATTR", "__traceback__"), "leave": ("CALL", (3, ())), "swallowed": ("POP_JUMP_IF", "true"),
            "raise": ("RAISE_VARARGS", 0),
            "fine": ("POP_EXCEPT", None), "none": ("LOAD_CONST", None), "clear": ("STORE_FAST", name), "delete": ("DELETE_FAST", name),
            "behind": ("JUMP", None),
            "unbind": ("LOAD_CONST", None), "unbind2": ("STORE_FAST", name), "unbind3": ("DELETE_FAST", name), "unbind4": ("RERAISE", 1),
            "again": ("RERAISE", 0),
            "cleanup": ("COPY", 3), "cleanup2": ("POP_EXCEPT", None), "cleanup3": ("RERAISE", 1),
        }.items()}
        self.exits[handler, left_out] = made["start"]
        made["other"].target, made["swallowed"].target = made["again"], made["fine"]
        inner = ExceptionHandler(made["unbind"], 1, True)
        outer = ExceptionHandler(made["cleanup"], 1, True)
        for label, inst in made.items():
            if label in ("start", "kind", "match", "other", "store", "again") or label.startswith("unbind"):
                inst.handler = outer
            elif label in ("fine", "none", "clear", "delete", "behind") or label.startswith("cleanup"):
                self.handled(inst, cleanup.target, left_out - 1, False)
            else:
                inst.handler = inner
        self.links.append((made["behind"], self.want(swallow + 4, left_out - 1, False)))
        self.tails.setdefault(left_out, []).extend(made.values())
        return made["start"]
