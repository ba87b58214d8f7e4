"""CPython 3.10: a stack of blocks instead of a table of handlers, three entries for an exception, no caches and no NULLs."""

from .assemble import Assembled, assemble
from .decode import canonical, name_code, qualname

__all__ = ["Assembled", "assemble", "canonical", "name_code", "qualname"]
