"""Patterns of ``match``: their code is run on a stack of subjects, each of which collects what is asked of it.

``compiler_pattern`` writes straight code: a test, a conditional jump to where the rest of the stack is dropped, the next
test. Only alternatives (``a | b``) part and meet again. Captured values stay on the stack until the whole pattern matched,
so what an instruction does to the stack says all, in whatever order the compiler's swaps put things.
"""

from __future__ import annotations

import ast
import operator
from typing import Any

from ..errors import DecompileError
from .graph import Graph
from .items import Item, as_expr

_LOADS = frozenset(("LOAD_CONST", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME", "LOAD_FROM_DICT_OR_DEREF", "LOAD_ATTR",
                    "BUILD_TUPLE"))


class Subject(Item):
    """A value that a pattern is matched against."""

    __slots__ = ("child", "names", "peers", "shape", "data", "size", "starred", "is_star", "parent")

    def __init__(self, parent: Subject | None = None) -> None:
        self.parent = parent  # what it is a copy of
        self.child: Subject | None = None  # the copy that the pattern was tried on
        self.names: list[str] = []  # what it was stored as
        self.peers: list[Subject] = []  # the captures of other alternatives that stand in the same place
        self.shape = ""  # value, singleton, or, sequence, mapping, class
        self.data: Any = None
        self.size = -1  # of a sequence: how many patterns
        self.starred = True  # whether one of them is starred
        self.is_star = False

    def capture(self, name: str) -> None:
        if name not in self.names:
            self.names.append(name)
        for peer in self.peers:
            peer.capture(name)

    def pattern(self) -> ast.pattern:
        """What was found out, as syntax."""
        if self.is_star:
            return ast.MatchStar(self.names[0] if self.names else None)
        inner = self._shape()
        if inner is None and self.child is not None:
            inner = self.child.pattern()
        for name in self.names:
            inner = ast.MatchAs(inner, name)
        return inner or ast.MatchAs(None, None)

    def _shape(self) -> ast.pattern | None:
        data = self.data
        if self.shape == "value":
            return ast.MatchValue(data)
        if self.shape == "singleton":
            return ast.MatchSingleton(data)
        if self.shape == "or":
            return ast.MatchOr([one.pattern() for one in data])
        if self.shape == "sequence":
            return ast.MatchSequence([one.pattern() for one in self._elements()])
        if self.shape == "mapping":
            keys, values, rest = data
            return ast.MatchMapping(keys, [one.pattern() for one in values], rest and (rest.names[0] if rest.names else "_"))
        if self.shape == "class":
            cls, names, values = data
            patterns = [one.pattern() for one in values]
            positional = len(values) - len(names)
            return ast.MatchClass(cls, patterns[:positional], list(names), patterns[positional:])
        return None

    def _elements(self) -> list[Subject]:
        if isinstance(self.data, list):
            return self.data
        taken: dict[int, Subject] = self.data or {}  # by index, negative ones from the end
        size = self.size if self.size >= 0 else 1
        elements = [Subject() for _ in range(size)]
        star = max((at for at in taken if at >= 0), default=-1) + 1
        for at, one in taken.items():
            elements[at if at >= 0 else size + at] = one
        if self.starred:
            elements[star].is_star = True
        return elements


class _Length(Item):
    """``len(subject)``, or that less a constant: an index."""

    __slots__ = ("subject", "less")

    def __init__(self, subject: Subject, less: int = 0) -> None:
        self.subject, self.less = subject, less


class _Test(Item):
    """The outcome of a test, for the jump behind it."""

    __slots__ = ()


class _Keys(Item):
    """The tuple of a mapping's keys."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count


class _Values(Item):
    """The tuple of a class's attributes or a mapping's values, where CPython 3.10 takes them from it one by one."""

    __slots__ = ("values",)

    def __init__(self, values: list[Subject]) -> None:
        self.values = values


def unknown(what: str = "") -> DecompileError:
    return DecompileError("a pattern of unknown shape" + what)


class PatternReader:
    """Runs a pattern's code. ``fails`` and ``blocks`` collect where its tests jump and which basic blocks it goes through."""

    def __init__(self, walker: Any, rules: dict[str, Any]) -> None:
        self.w = walker
        self.g: Graph = walker.g
        self.rules = rules
        self.fails: list[int] = []
        self.blocks: set[int] = set()

    def case(self, i: int, stack: list[Any]) -> int:
        """Runs the pattern that begins at ``i``: the first instruction of the guard or the body.

        The case's subject lies on top, or below a class and its attributes' names; it stays there (as a whole) in front of
        the guard of a case that is not the last.
        """
        at = next(k for k in range(len(stack) - 1, -1, -1) if isinstance(stack[k], Subject))
        root, ops = stack[at], self.g.ops
        while True:
            if len(stack) == at:
                return i
            if stack[-1] is root and root.child is not None and not root.shape:
                if ops[i] != "POP_TOP" and not ops[i].startswith("STORE_") and root.child.parent is None:
                    return i
            i = self.step(i, stack)

    def until_popped(self, i: int, stack: list[Any], at: int) -> int:
        """Runs on until the entry at ``at`` is popped, or dropped from between: as many entries less lie on the stack."""
        subject = stack[at]
        while subject in stack:
            i = self.step(i, stack)
        return i

    # -- one instruction

    def step(self, i: int, stack: list[Any]) -> int:
        g, w = self.g, self.w
        w.spend()
        self.blocks.add(g.block_of[i])
        inst = g.insts[i]
        op, arg = inst.op, inst.arg
        top = stack[-1]
        if op in _LOADS:
            if op == "LOAD_ATTR" and isinstance(top, Item):
                raise unknown()
            self.rules[op](w, inst, stack, None)
        elif op == "JUMP":
            target = self.g.raw_target(i)
            if target <= i:
                raise unknown()
            return target
        elif op == "SWAP":
            stack[-arg], stack[-1] = stack[-1], stack[-arg]
        elif op == "POP_JUMP_IF":
            self.jump(i, inst, stack)
        elif op == "APPLY":
            self.apply(arg, stack)
        elif op == "MATCH_CLASS":
            return self.class_pattern(i, arg, stack)
        elif op == "MATCH_KEYS":
            return self.keys(i, stack)
        elif op == "BUILD_MAP":
            return self.rest(i, stack)
        elif isinstance(top, _Values):
            self.on_values(op, arg, stack)
        elif not isinstance(top, Subject):
            if op != "POP_TOP" or not isinstance(top, _Keys):
                raise unknown(f": {op}")
            stack.pop()
        elif op == "COPY" and arg == 1:
            return self.copy(i, stack)
        elif op == "POP_TOP":
            stack.pop().parent = None
        elif op in ("STORE_FAST", "STORE_DEREF", "STORE_GLOBAL", "STORE_NAME"):
            w.note_store(inst)
            top.capture(w.name(arg))
            stack.pop().parent = None
        elif op in ("MATCH_SEQUENCE", "MATCH_MAPPING"):
            self.shape(top, "sequence" if op == "MATCH_SEQUENCE" else "mapping", None)
            if op == "MATCH_MAPPING":
                top.data = [], [], None
            stack.append(_Test())
        elif op == "GET_LEN":
            stack.append(_Length(top))
        elif op in ("UNPACK_SEQUENCE", "UNPACK_EX"):
            self.unpack(stack.pop(), op, arg, stack)
        else:
            raise unknown(f": {op}")
        return i + 1

    def shape(self, subject: Subject, shape: str, data: Any) -> None:
        if subject.shape:
            raise unknown()
        subject.shape, subject.data = shape, data

    def jump(self, i: int, inst: Any, stack: list[Any]) -> None:
        test = stack.pop()
        if isinstance(test, Subject) and inst.arg == "not_none":
            self.shape(test, "singleton", None)
            test.parent = None
        elif not isinstance(test, _Test) or inst.arg != "false":
            raise unknown()
        self.fails.append(self.g.raw_target(i))

    def apply(self, arg: Any, stack: list[Any]) -> None:
        fn, count = arg
        right, left = stack.pop(), stack.pop()
        if count != 2:
            raise unknown()
        if isinstance(left, _Length):
            number = right.value if isinstance(right, ast.Constant) else None
            if not isinstance(number, int):
                raise unknown()
            if fn is operator.sub:
                stack.append(_Length(left.subject, number))
                return
            if fn not in (operator.eq, operator.ge):
                raise unknown()
            if left.subject.shape == "sequence":
                left.subject.starred = fn is operator.ge
                left.subject.size = number + (fn is operator.ge)
            stack.append(_Test())
        elif isinstance(left, _Values) and fn is operator.getitem and isinstance(right, ast.Constant):
            stack.append(left.values[right.value])  # type: ignore[index]
        elif not isinstance(left, Subject):
            raise unknown()
        elif fn is operator.getitem:
            stack.append(self.element(left, right))
        elif fn is operator.eq:
            self.shape(left, "value", as_expr(right))
            left.parent = None
            stack.append(_Test())
        elif fn is operator.is_ and isinstance(right, ast.Constant):
            self.shape(left, "singleton", right.value)
            left.parent = None
            stack.append(_Test())
        else:
            raise unknown()

    def element(self, copy: Subject, index: Any) -> Subject:
        subject = copy.parent
        if subject is None or subject.shape != "sequence":
            raise unknown()
        subject.child = None
        if isinstance(index, _Length):
            at = -index.less
        elif isinstance(index, ast.Constant):
            at = index.value
        else:
            raise unknown()
        subject.data = subject.data or {}
        subject.data[at] = made = Subject()
        return made

    def unpack(self, subject: Subject, op: str, arg: Any, stack: list[Any]) -> None:
        if subject.shape != "sequence" or subject.data:
            raise unknown()
        if op == "UNPACK_SEQUENCE":
            elements = [Subject() for _ in range(arg)]
        else:
            before, after = arg
            elements = [Subject() for _ in range(before + after + 1)]
            elements[before].is_star = True
        subject.data, subject.parent = elements, None
        stack += elements[::-1]

    def expect(self, i: int, *ops: str) -> None:
        if tuple(self.g.ops[i : i + len(ops)]) != ops:
            raise unknown()

    def on_values(self, op: str, arg: Any, stack: list[Any]) -> None:
        if op == "COPY" and arg == 1:
            stack.append(_Values(stack[-1].values))
        elif op == "POP_TOP":
            stack.pop()
        else:
            raise unknown(f": {op}")

    def found(self, i: int, values: list[Subject], stack: list[Any]) -> int:
        """Behind the jump at ``i`` of a pattern that has found its attributes or values: a tuple, unpacked at once since 3.11."""
        self.fails.append(self.g.raw_target(i))
        if self.g.ops[i + 1] == "UNPACK_SEQUENCE":
            stack += values[::-1]
            return i + 2
        stack.append(_Values(values))
        return i + 1

    def class_pattern(self, i: int, count: int, stack: list[Any]) -> int:
        names, cls, subject = stack.pop(), stack.pop(), stack.pop()
        self.expect(i + 1, "COPY", "POP_JUMP_IF")
        if not isinstance(names, ast.Tuple) or not isinstance(subject, Subject):
            raise unknown()
        attributes = [name.value for name in names.elts if isinstance(name, ast.Constant)]
        values = [Subject() for _ in range(count + len(attributes))]
        self.shape(subject, "class", (as_expr(cls), attributes, values))
        subject.parent = None
        return self.found(i + 2, values, stack)

    def keys(self, i: int, stack: list[Any]) -> int:
        keys, subject = stack.pop(), stack[-1]
        self.expect(i + 1, "COPY", "POP_JUMP_IF")
        if not isinstance(keys, ast.Tuple) or not isinstance(subject, Subject) or subject.shape != "mapping":
            raise unknown()
        values = [Subject() for _ in keys.elts]
        subject.data = list(keys.elts), values, None
        stack.append(_Keys(len(values)))
        return self.found(i + 2, values, stack)

    def rest(self, i: int, stack: list[Any]) -> int:
        """``**rest``: a copy of the mapping out of which the keys are deleted."""
        keys, subject = stack.pop(), stack.pop()
        if not isinstance(keys, _Keys) or not isinstance(subject, Subject) or subject.shape != "mapping":
            raise unknown()
        without = ("UNPACK_SEQUENCE", *(("COPY", "SWAP", "DELETE_SUBSCR") * keys.count))
        made = Subject()
        subject.data = *subject.data[:2], made
        if self.g.ops[i + 1] == "COPY":  # 3.10 keeps the subject
            without = ("BUILD_MAP", "COPY", "DICT_UPDATE", "SWAP", *without)
            stack.append(subject)
        else:
            without = ("BUILD_MAP", "SWAP", "DICT_UPDATE", *without)
            subject.parent = None
        self.expect(i, *without)
        stack.append(made)
        return i + len(without)

    # -- copies: of the case's subject, for ``as``, for an element, for alternatives

    def copy(self, i: int, stack: list[Any]) -> int:
        subject = stack[-1]
        starts = self.alternatives(i)
        if len(starts) > 1:
            kept = len(self.fails), set(self.blocks), list(subject.names)
            try:
                return self.either(starts, stack)
            except DecompileError:
                del self.fails[kept[0] :]
                self.blocks = kept[1]
                subject.names = kept[2]
        made = subject.child = Subject(subject)
        stack.append(made)
        return i + 1

    def alternatives(self, i: int) -> list[int]:
        """Where the alternatives begin if the copy at ``i`` is made for the first of some; one entry or none otherwise."""
        g = self.g
        depth = g.depth[i]
        starts = []
        while g.ops[i] == "COPY" and g.insts[i].arg == 1:
            starts.append(i)
            i = self.failed(i, depth)
            if i < 0:
                return []
        return starts if g.ops[i] == "POP_TOP" else []

    def failed(self, i: int, depth: int) -> int:
        """Where a pattern that begins at ``i`` gets to when it does not match, ``depth`` entries then on the stack; or -1."""
        ops = self.g.ops
        while ops[i] != "POP_JUMP_IF":
            i += 1
            if i >= self.g.n:
                return -1
        return self.dropped(self.g.raw_target(i), depth)

    def dropped(self, i: int, depth: int) -> int:
        """The instruction behind those that drop what a failed pattern left on the stack above ``depth`` entries, or -1."""
        g = self.g
        while True:
            i = g.resolve(i)
            if g.depth[i] <= depth:
                return i if g.depth[i] == depth else -1
            self.blocks.add(g.block_of[i])
            if g.ops[i] == "POP_TOP":
                i += 1
            elif g.ops[i] == "COPY":
                i = self.failed(i, g.depth[i])
                if i < 0:
                    return -1
            else:
                return -1

    def either(self, starts: list[int], stack: list[Any]) -> int:
        """Runs all alternatives, each until the subject is popped; there they have met."""
        g, at = self.g, len(stack) - 1
        subject = stack[at]
        end, ended, tried = -1, None, []
        for start in starts:
            mine = list(stack)
            one = Subject()
            mine.append(one)
            behind = self.until_popped(start + 1, mine, at)
            tried.append(one)
            if ended is None:
                end, ended = behind, mine
                continue
            if len(mine) != len(ended) or not g.same(end, behind):
                raise unknown()
            for first, other in zip(ended[at:], mine[at:], strict=True):
                if first is not other:
                    first.peers.append(other)
        self.shape(subject, "or", tried)
        subject.parent = None
        stack[:] = ended or []
        return end
