"""CPython bytecode as canonical instructions, and back. Importing it tells an interpreter that is not supported."""

from .versions import VERSION

__all__ = ["VERSION"]
