"""A wheel installs where there is no compiler, and what it installed runs."""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest
import torch

ROOT = pathlib.Path(__file__).parents[2]
COPIED = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "requirements-dev.txt", "requirements-models.txt", "src")


@pytest.mark.slow
def test_a_wheel_runs_the_demo_without_a_compiler(tmp_path):
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    for name in COPIED:
        subprocess.run(["cp", "-r", str(ROOT / name), str(source)], check=True)
    for built in source.glob("src/framegraft/*.so"):
        built.unlink()
    pip = [sys.executable, "-m", "pip", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(source)], check=True)
    (wheel,) = tmp_path.glob("framegraft-*.whl")
    tag = sys.implementation.cache_tag.replace("cpython-", "cp")
    assert f"-{tag}-{tag}-" in wheel.name
    contents = zipfile.ZipFile(wheel).namelist()
    assert any(name.startswith("framegraft/_native.") and name.endswith(".so") for name in contents)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(site)], check=True)
    python = site / "bin" / "python"
    packages = pathlib.Path(subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
                                           check=True, capture_output=True, text=True).stdout.strip())
    # No compiler, nothing of this environment but torch and what it needs, which lies next to it.
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(packages), str(wheel)], check=True,
                   env={**os.environ, "CC": "false"})
    (packages / "torch.pth").write_text(str(pathlib.Path(torch.__file__).parents[1]) + "\n")
    environment = {"PATH": str(site / "bin"), "HOME": str(tmp_path), "CC": "false"}
    where = subprocess.run([python, "-c", "import framegraft; print(framegraft.__file__)"],
                           check=True, capture_output=True, text=True, cwd=tmp_path, env=environment).stdout.strip()
    assert where.startswith(str(packages))
    done = subprocess.run([python, str(ROOT / "examples" / "demo.py")], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert "my_compiler() called with FX graph" in done.stdout
