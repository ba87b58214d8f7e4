"""The runner of libraries' tests finds what fails with capture only, and nothing else."""

import os
import pathlib
import subprocess
import sys

RUN = str(pathlib.Path(__file__).with_name("run.py"))
SUITE = """
import os
import unittest
import torch


def test_the_same():
    assert torch.ones(2).add(1).sum() == 4


def test_that_looks():
    assert not torch.compiler.is_compiling()


def test_that_fails_anyhow():
    assert torch.ones(2).sum() == 3


def test_that_kills_the_process():
    if torch.compiler.is_compiling():
        os._exit(3)


class TestCase(unittest.TestCase):
    def test_method_that_looks(self):
        self.assertFalse(torch.compiler.is_compiling())

    def test_method(self):
        self.assertEqual(torch.ones(2).add(1).sum(), 4)
"""


def test_what_fails_with_capture_only_is_listed(tmp_path):
    file = tmp_path / "test_of_a_library.py"
    file.write_text(SUITE)
    command = [sys.executable, RUN, str(file), "--", "-p", "no:cacheprovider"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTEST_ADDOPTS": ""})
    assert done.returncode == 1, done.stderr
    told = done.stdout
    assert "3 of 5 tests that pass without capture fail with it" in told
    assert "failed " in told and "::test_that_looks" in told and "TestCase::test_method_that_looks" in told
    assert "crashed " in told and "::test_that_kills_the_process: exit status 3" in told


def test_a_missing_file_is_refused():
    command = [sys.executable, RUN, "nowhere/test_x.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "no such file or folder: nowhere/test_x.py" in done.stderr
