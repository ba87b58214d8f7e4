"""Code objects made of decompiled source, to run in the place of those that were decompiled."""

import __future__

import re
import types

from framegraft.decompiler import decompile
from framegraft.decompiler.verify import recompile

PLACE = re.compile(r"__co_consts\[(\d+)\]\Z")


def filled(made: types.CodeType, code: types.CodeType) -> types.CodeType:
    """``made`` with the constants of ``code`` where its source has placeholders."""
    consts = []
    for const in made.co_consts:
        place = PLACE.match(const) if isinstance(const, str) else None
        consts.append(code.co_consts[int(place[1])] if place else const)
    return made.replace(co_consts=tuple(consts))


def recompiled(code: types.CodeType) -> types.CodeType:
    """``code`` decompiled, compiled and made ready to take its place."""
    source = decompile(code)
    name = code.co_name if code.co_name.isidentifier() else "__decompiled"
    flags = sum(getattr(__future__, n).compiler_flag for n in ("annotations",) if code.co_flags & getattr(__future__, n).compiler_flag)
    made = filled(recompile(source, code, name, flags), code)
    made = made.replace(co_name=code.co_name, co_qualname=code.co_qualname, co_filename=code.co_filename)
    missing = set(code.co_freevars) ^ set(made.co_freevars)
    assert not missing, f"free variables {missing} in\n{source}"
    assert made.co_freevars == code.co_freevars
    assert made.co_argcount == code.co_argcount
    return made
