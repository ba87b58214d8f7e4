"""CPython bytecode as canonical instructions, and back."""
