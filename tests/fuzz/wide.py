"""The wide grammar: programs as in ``generate``, with uses of a library of rarer things among their statements."""

import re

from .generate import PRELUDE, Program
from .library import CHANGES, LIBRARY
from .scope import Type
from .snippets import SNIPPETS

TYPES: dict[str, Type] = {"I": "I", "F": "F", "B": "B", "S": "S", "T": "T", "LI": ("list", "I"), "LT": ("list", "T"),
                          "DI": ("dict", "I"), "DT": ("dict", "T"), "SI": ("set",)}
WIDE = 100_000  # seeds below make the programs that they made before there was a wide grammar
ALL = [paragraph.splitlines() for paragraph in SNIPPETS.strip().split("\n\n")]
CHOICE = re.compile(r"\$\(((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)\)")  # parentheses nest three deep
PLACE = re.compile(r"\$([a-z]+|C)(?::([A-Z]+))?|\$([A-Z]+)")


class Wide(Program):
    """A program, about one statement of four of which is a snippet."""

    prelude = PRELUDE + LIBRARY
    changes = CHANGES

    def statement(self) -> None:
        if self.indent < 6 and self.chance(0.25):
            self.budget -= 1
            self.snippet(self.pick(ALL))
        else:
            super().statement()

    def snippet(self, lines: list[str]) -> None:
        """Emits a snippet; what it declares is known from then on, or within its ``$BODY``."""
        names: dict[str, str] = {}
        declared: dict[str, Type] = {}
        base = self.indent
        for line in lines:
            text = line.lstrip()
            self.indent = base + (len(line) - len(text)) // 4
            if text == "$BODY":
                self.inner_body()
            else:
                self.emit(self.filled(text, names, declared))
        self.indent = base
        self.scope.names |= declared

    def inner_body(self) -> None:
        self.indent -= 1
        with self.block(keep=0):
            self.body(self.random.randrange(0, 3))
        self.indent += 1

    def filled(self, text: str, names: dict[str, str], declared: dict[str, Type]) -> str:
        while CHOICE.search(text):
            text = CHOICE.sub(lambda match: self.pick(alternatives(match[1])), text, count=1)

        def place(match: re.Match) -> str:
            if match[3]:
                return self.in_call(TYPES[match[3]])
            name = names.setdefault(match[1], "K" + self.fresh("") if match[1] == "C" else self.fresh(match[1] + "_"))
            if match[2]:
                declared[name] = TYPES[match[2]]
            return name

        return PLACE.sub(place, text)

    def in_call(self, wanted: Type) -> str:
        """An expression that stands anywhere: without walrus, and without the quotes and braces that f-strings cannot hold."""
        for _ in range(4):
            text = self.expr(wanted, 1)
            if not set(text) & set("{}'\"\\:=!"):
                return f"({text})" if " " in text else text
        return self.expr(wanted, 0) if wanted in ("I", "T") else {"S": "G_str", "F": "G_float", "B": "bool(G_int)"}.get(wanted, "list(G_list)" if wanted[0] == "list" else "dict(G_dict)" if wanted[0] == "dict" else "set(G_list)")


def generate(seed: int) -> str:
    """The program of a seed, in the wide grammar from WIDE on."""
    return (Wide if seed >= WIDE else Program)(seed).text()


def alternatives(text: str) -> list[str]:
    """``text`` cut at its outermost ``|``."""
    found, depth = [""], 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if char == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return found
