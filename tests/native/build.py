"""Guard programs, entries and compiled functions made by hand, without a capture."""

import gc
import sys
import types

from framegraft import _native
from framegraft.bytecode.decode import decode
from framegraft.bytecode.encode import encode

ALWAYS = _native.GuardProgram([])


class Thing:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class Other(Thing):
    pass


def node(access, arg=None, *checks, parent=-1):
    """A node as the guard program takes it; checks are (kind, payload) and get their position as id."""
    return (parent, access, arg, list(checks))


def program(*nodes):
    count = 0
    laid_out = []
    for parent, access, arg, checks in nodes:
        numbered = []
        for kind, payload in checks:
            numbered.append((kind, payload, count))
            count += 1
        laid_out.append((parent, access, arg, numbered))
    return _native.GuardProgram(laid_out)


def argument(*checks, index=0):
    return program(node("ARG", index, *checks))


def frame():
    pass


def holds(made, *args, fn=frame):
    """Whether all guards hold; check and explain must agree, now and on a second look."""
    first = made.check(args, fn)
    assert made.check(args, fn) is first
    assert (made.explain(args, fn) is None) is first
    return first


def positional(fn):
    """Code that does what ``fn`` does and takes all its parameters positionally, as transformed code does."""
    code = fn.__code__
    stars = bool(code.co_flags & 4) + bool(code.co_flags & 8)
    count = code.co_argcount + code.co_kwonlyargcount + stars
    return encode(decode(code), code, argnames=list(code.co_varnames[:count]))


class Compiled:
    """A compiled function whose entries run ``body``; counts its misses."""

    def __init__(self, fn, body=None, guards=ALWAYS, ctx=None):
        self.fn, self.body, self.guards, self.misses = fn, body or fn, guards, []
        self.ctx = ctx if ctx is not None else object()
        self.call = _native.CompiledFunction(fn, self.ctx, self.miss)

    def entry(self, guards=None, body=None, **kw):
        return _native.Entry(self.guards if guards is None else guards, positional(body or self.body), self.fn.__globals__, self.ctx, **kw)

    def miss(self, callee, args):
        self.misses.append(args)
        made = self.entry()
        _native.add_entry(self.fn.__code__, made)
        return made


def compiled(fn, **kw):
    return Compiled(fn, **kw).call


def fresh(fn):
    """The function with a code object of its own."""
    made = types.FunctionType(fn.__code__.replace(), fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__kwdefaults__ = fn.__kwdefaults__
    return made


def growth(run, count=10_000):
    """Blocks that ``count`` runs leave behind."""
    for _ in range(10):
        run()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(count):
        run()
    gc.collect()
    return sys.getallocatedblocks() - before
