"""The C extension; everything else is in pyproject.toml."""

from setuptools import Extension, setup

CSRC = "src/framegraft/csrc"
SOURCES = ("module", "tensor", "guards", "walk", "memo", "words", "run", "shape",
           "cache", "hook", "delegate", "function", "callables", "path", "handled", "quiet")

setup(
    ext_modules=[
        Extension(
            "framegraft._native",
            [f"{CSRC}/{name}.c" for name in SOURCES],
            depends=[f"{CSRC}/{name}.h" for name in ("core", "compat", "guards", "memo", "tensor")],
            extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter",
                                "-Wno-missing-field-initializers", "-Wno-cast-function-type"],
            libraries=["dl"],
        )
    ]
)
