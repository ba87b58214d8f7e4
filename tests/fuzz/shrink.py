"""Makes a failing program smaller: statements go, blocks are unwrapped, expressions become simpler, while it still fails."""

import ast
import copy
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def shrink(text: str, fails: Callable[[str], bool], seconds: float = 60) -> str:
    """The smallest program found in the given time; ``fails`` tells whether one still shows the difference."""
    deadline = time.monotonic() + seconds
    best = text
    progress = True
    while progress and time.monotonic() < deadline:
        best, progress = without_runs(best, fails, deadline)
        for candidate in candidates(best):
            if time.monotonic() > deadline:
                break
            if len(candidate) < len(best) and fails(candidate):
                best, progress = candidate, True
                break
    return best


def without_runs(text: str, fails: Callable[[str], bool], deadline: float) -> tuple[str, bool]:
    """Runs of statements go at once, long runs first: most of a program has nothing to do with its difference."""
    before = text
    size = len(text.splitlines())
    while size:
        tree = ast.parse(text)
        lists = [(i, len(node.body)) for i, node in enumerate(ast.walk(tree)) if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))]
        runs = [(i, start) for i, count in lists for start in range(0, count, size) if count >= size]
        for index, start in reversed(runs):  # the places of those before stay
            if time.monotonic() > deadline:
                return text, False
            changed = ast.parse(text)
            body: Any = _nodes(changed)[index]
            body.body[start : start + size] = [] if len(body.body) > size or index == 0 else [ast.Pass()]
            for candidate in _text(changed):
                if len(candidate) < len(text) and fails(candidate):
                    text = candidate
        size //= 2
    return text, len(text) < len(before)


def candidates(text: str) -> Iterator[str]:
    """Programs with one thing less, large pieces first."""
    tree = ast.parse(text)
    spots = [(i, field, j) for i, node in enumerate(ast.walk(tree)) for field in BODIES
             for j in range(len(getattr(node, field, None) or []) if isinstance(getattr(node, field, None), list) else 0)]
    sizes = {s: _size(_at(tree, s)) for s in spots}
    for spot in sorted(spots, key=lambda s: -sizes[s]):
        for edit in (_remove, _unwrap):
            yield from _edited(tree, spot, edit)
    yield from _simpler_expressions(tree)


def _nodes(tree: ast.AST) -> list[ast.AST]:
    return list(ast.walk(tree))


def _at(tree: ast.AST, spot: tuple) -> Any:
    return getattr(_nodes(tree)[spot[0]], spot[1])[spot[2]]


def _size(node: ast.AST) -> int:
    return sum(1 for _ in ast.walk(node))


def _edited(tree: ast.AST, spot: tuple, edit: Callable) -> Iterator[str]:
    changed = copy.deepcopy(tree)
    owner = _nodes(changed)[spot[0]]
    if edit(owner, spot[1], spot[2]):
        yield from _text(changed)


def _text(tree: ast.AST) -> Iterator[str]:
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<shrunk>", "exec")
    except Exception:
        return
    yield text


def _remove(owner: Any, field: str, index: int) -> bool:
    items = getattr(owner, field)
    if isinstance(items[index], ast.Pass):
        return False
    del items[index]
    if not items and field == "body":
        items.append(ast.Pass())
    return True


def _unwrap(owner: Any, field: str, index: int) -> bool:
    """A compound statement becomes its body."""
    items = getattr(owner, field)
    inner = getattr(items[index], "body", None)
    if field in ("handlers", "cases") or not isinstance(inner, list) or isinstance(items[index], (ast.FunctionDef, ast.ClassDef)):
        return False
    items[index : index + 1] = inner
    return True


def _simpler_expressions(tree: ast.AST) -> Iterator[str]:
    nodes = _nodes(tree)
    places = [(i, f, None) for i, n in enumerate(nodes) for f, v in ast.iter_fields(n) if isinstance(v, ast.expr)]
    places += [(i, f, j) for i, n in enumerate(nodes) for f, v in ast.iter_fields(n) if isinstance(v, list)
               for j, x in enumerate(v) if isinstance(x, ast.expr)]
    for i, field, j in places:
        value = getattr(nodes[i], field) if j is None else getattr(nodes[i], field)[j]
        if isinstance(value, (ast.Name, ast.Constant)) and j is None:
            continue
        parts = [c for c in ast.iter_child_nodes(value) if isinstance(c, ast.expr)]
        for part in [*parts, ast.Constant(1), None]:
            if part is None and j is None:
                continue
            changed = copy.deepcopy(tree)
            owner = _nodes(changed)[i]
            new = copy.deepcopy(part)
            if j is None:
                setattr(owner, field, new)
            elif new is None:
                del getattr(owner, field)[j]
            else:
                getattr(owner, field)[j] = new
            yield from _text(changed)
