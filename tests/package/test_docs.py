"""Documents made from the source are up to date, and files that documents name exist."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_generated_documents_are_up_to_date():
    done = subprocess.run([sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_named_files_exist(path):
    text = path.read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"
    for name in re.findall(r"`((?:src/framegraft/|docs/|tests/|examples/|benchmarks/)[\w./-]*\w)`", text):
        assert (ROOT / name).exists(), f"{path.name} names {name}"


def test_the_architecture_names_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text()
    names = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", text)) - {"src/framegraft/"}
    assert len(names) > 30
    for name in names:
        assert (ROOT / "src" / "framegraft" / name).exists(), name
