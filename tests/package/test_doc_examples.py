"""The examples in the documents do what they say."""

import pathlib
import re

import pytest

PAGES = ["dynamic_shapes.md", "export.md", "training.md"]
DOCS = pathlib.Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", PAGES)
def test_examples(page):
    path = DOCS / page
    space = {"__name__": page.removesuffix(".md")}
    blocks = list(re.finditer(r"^```python\n(.*?)^```", path.read_text(), re.S | re.M))
    assert blocks
    for block in blocks:
        line = path.read_text().count("\n", 0, block.start()) + 1
        exec(compile("\n" * line + block[1], str(path), "exec"), space)
