"""A release: its version, its workflow, and that what is packed runs elsewhere."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import selfbyoc
from selfbyoc.tvm import GENERATION

ROOT = Path(__file__).parents[2]


def test_the_version_is_the_same_everywhere():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r'^version = "(.*)"$', project, re.MULTILINE)[1] == selfbyoc.__version__
    assert f"## [{selfbyoc.__version__}]" in changes


def test_every_extra_of_the_readme_exists():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = project.partition("[project.optional-dependencies]")[2].partition("\n[tool.")[0]
    extras = set(re.findall(r"^([\w-]+) = \[", section, re.MULTILINE))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = "\n".join(re.findall(r"^pip install .*$", text, re.MULTILINE))
    named = re.findall(r"\[([\w,-]+)\]", lines)
    assert {"onnx", "torch"} <= {each for group in named for each in group.split(",")} <= extras


def test_the_workflow_runs_what_must_pass():
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "- run: .ci/run\n" in text
    assert "- run: make package " in text
    for template in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        if template.name != "config.yml":
            assert "`selfbyoc show MODEL`" in template.read_text(encoding="utf-8")


@pytest.mark.skipif(GENERATION == "relay", reason="its environment has no newer setuptools")
@pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="needs onnx")
def test_what_is_packed_runs(tmp_path):
    """Beside this environment's TVM; `make package` takes all from the index."""
    pytest.importorskip("setuptools", minversion="77", reason="needs setuptools 77")
    env = {**os.environ, "COLUMNS": "80"}
    command = [sys.executable, str(ROOT / "tools/package.py"), "--offline", "--output", tmp_path]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the numbers are NumPy's" in done.stdout
    assert done.stdout.rstrip().endswith("are whole, and run")
