"""The decompiler under the name that measuring tools look for."""

from ..decompiler import DecompileError, decompile

__all__ = ["DecompileError", "decompile"]
