"""Which values get a NULL below them: CPython calls quicker that way, and CALL_FUNCTION_EX demands it.

A NULL goes below a callable that plain loads push and that nothing but calls take. Values that meet in one stack entry
(a conditional expression as callable) share one verdict: they are joined into classes (union-find), so that each
instruction is visited once.
"""

from __future__ import annotations

from collections.abc import Collection

from ..flow import NO_FALLTHROUGH, stack_use
from ..ir import Instruction
from ..verify import REACH

_LOADS = frozenset(("LOAD_GLOBAL", "LOAD_FAST", "LOAD_CONST", "LOAD_DEREF", "LOAD_NAME", "LOAD_BUILD_CLASS",
                    "LOAD_FROM_DICT_OR_DEREF"))
NULL, METHOD = "null", "method"


class Callables:
    """The stack of canonical code, each entry a class of values; 0 is the class of all that can have no NULL."""

    def __init__(self, body: list[Instruction], results: Collection[str]) -> None:
        self.body = body
        self.results = results
        self.parents = [0]
        self.pushers: list[tuple[int, int]] = []  # (instruction, class)
        self.calls: list[tuple[int, int]] = []
        self.spoilt: set[int] = {0}
        self.entries: list[tuple[int, ...] | None] = [None] * len(body)  # the stack, where control flows together
        self.targets = {inst.target.index for inst in body if inst.target is not None}
        self.targets |= {inst.handler.target.index for inst in body if inst.handler is not None}
        self.work: list[tuple[int, list[int]]] = [(0, [])]

    def find(self, value: int) -> int:
        parents = self.parents
        while parents[value] != value:
            parents[value] = parents[parents[value]]
            value = parents[value]
        return value

    def join(self, index: int, stack: list[int]) -> bool:
        """Whether the instruction was reached before; its stack and this one are the same from now on."""
        seen = self.entries[index]
        if seen is None:
            self.entries[index] = tuple(stack)
            return False
        if len(seen) != len(stack):
            raise ValueError(f"stack depth {len(seen)} and {len(stack)} at {self.body[index]}")
        for a, b in zip(seen, stack, strict=True):
            if a != b:
                a, b = self.find(a), self.find(b)
                self.parents[max(a, b)] = min(a, b)
        return True

    def run(self) -> None:
        body, work = self.body, self.work
        covered: tuple | None = None
        while work:
            index, stack = work.pop()
            while True:
                if index >= len(body):
                    raise ValueError(f"control runs off the end after {body[-1]}")
                if index in self.targets and self.join(index, stack):
                    break
                inst = body[index]
                handler = inst.handler
                if handler is not None:
                    kept = stack[: handler.depth]
                    if covered != (handler, kept):
                        covered = (handler, kept)
                        work.append((handler.target.index, kept + [0] * (1 + handler.lasti)))
                if inst.target is not None:
                    branch = stack.copy()
                    self.step(inst, branch, True)
                    work.append((inst.target.index, branch))
                self.step(inst, stack, False)
                if inst.op in NO_FALLTHROUGH:
                    break
                index += 1

    def step(self, inst: Instruction, stack: list[int], jump: bool) -> None:
        op = inst.op
        if op in _LOADS:
            stack.append(self.fresh(inst))
            return
        touched, left = stack_use(inst, jump)
        if touched > len(stack):
            raise ValueError(f"stack underflow at {inst}")
        if op == "LOAD_ATTR":
            self.spoilt.add(stack[-1])
            stack[-1] = self.fresh(inst)
        elif op == "COPY":
            self.spoilt.add(stack[-inst.arg])
            stack.append(0)
        elif op == "SWAP":
            self.spoilt.update((stack[-1], stack[-inst.arg]))
            stack[-1], stack[-inst.arg] = stack[-inst.arg], stack[-1]
        elif touched or left:
            if op in REACH:
                if inst.arg + REACH[op] > len(stack):
                    raise ValueError(f"stack underflow at {inst}")
                self.spoilt.add(stack[-inst.arg - REACH[op]])
                if op == "DICT_MERGE" and len(stack) > inst.arg + 2:
                    self.calls.append((inst.index, stack[-inst.arg - 3]))  # its error tells the callable's name
            rest = len(stack) - touched
            if op in ("CALL", "CALL_EX"):
                self.calls.append((inst.index, stack[rest]))
                self.spoilt.update(stack[rest + 1 :])
            else:
                self.spoilt.update(stack[rest:])
            stack[rest:] = [0] * left
            if op in self.results:
                stack[-1] = self.fresh(inst)

    def fresh(self, inst: Instruction) -> int:
        value = len(self.parents)
        self.parents.append(value)
        self.pushers.append((inst.index, value))
        return value

    def verdicts(self) -> tuple[dict[int, str], set[int]]:
        find, body = self.find, self.body
        bad = {find(value) for value in self.spoilt}
        good = {find(value) for call, value in self.calls if body[call].op != "DICT_MERGE"} - bad
        needed = {find(value) for call, value in self.calls if body[call].op != "CALL" or not body[call].arg[0]}
        good -= {find(value) for pusher, value in self.pushers if body[pusher].op in self.results} - needed
        no_method = {find(value) for call, value in self.calls if body[call].op == "CALL_EX"}
        no_method |= {find(value) for pusher, value in self.pushers if body[pusher].op != "LOAD_ATTR"}
        pushers = {index: NULL if find(value) in no_method else METHOD for index, value in self.pushers if find(value) in good}
        return pushers, {index for index, value in self.calls if find(value) in good}


def callables(body: list[Instruction], results: Collection[str] = ()) -> tuple[dict[int, str], set[int], set[int]]:
    """Loads that push a callable with a NULL -> NULL or METHOD; calls and DICT_MERGEs that find one; what is jumped to. Indices.

    METHOD: all loads are LOAD_ATTR and may become LOAD_METHOD. ``results``: operations whose result, pushed alone, can have a
    NULL as well; it gets one where calls with no positional argument, or with stars, take it. ValueError where stack depths are
    inconsistent.
    """
    found = Callables(body, results)
    found.run()
    return *found.verdicts(), found.targets
