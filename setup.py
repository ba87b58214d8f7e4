"""The C extension; everything else is in pyproject.toml."""

import compileall

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CSRC = "src/framegraft/csrc"
SOURCES = ("module", "tensor", "guards", "walk", "memo", "words", "run", "shape", "subclass",
           "cache", "hook", "delegate", "function", "callables", "path", "handled", "quiet", "chunks")


class Build(build_ext):
    """Modules that stay where they are (``pip install -e``, ``--inplace``) are compiled, too, as pip does with those it installs."""

    def run(self):
        super().run()
        if self.inplace or self.editable_mode:
            compileall.compile_dir("src/framegraft", quiet=1)


setup(
    cmdclass={"build_ext": Build},
    ext_modules=[
        Extension(
            "framegraft._native",
            [f"{CSRC}/{name}.c" for name in SOURCES],
            depends=[f"{CSRC}/{name}.h" for name in ("core", "compat", "guards", "memo", "tensor")],
            extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter",
                                "-Wno-missing-field-initializers", "-Wno-cast-function-type"],
            libraries=["dl"],
        )
    ],
)
