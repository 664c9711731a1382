"""PyTorch's code in README.md and docs/pytorch.md runs, and prints what it says."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from selfbyoc.tvm import GENERATION

ROOT = Path(__file__).parents[2]
# What an installed entry point does; that of the checkout may be from before it was there.
REGISTER = """
import torch
from selfbyoc.runtime.dynamo.backend import backend
if "selfbyoc" not in torch._dynamo.list_backends():
    torch._dynamo.register_backend(backend, name="selfbyoc")
"""


@pytest.mark.skipif(GENERATION == "relay", reason="dynamo's graphs go by Relax")
@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("page", ["README.md", "docs/pytorch.md"])
def test_code_prints_what_the_document_says(page, tmp_path):
    text = (ROOT / page).read_text(encoding="utf-8")
    code, wanted = (
        "".join(re.findall(rf"^```{kind} torch\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
        for kind in ("python", "text")
    )
    script = tmp_path / "pytorch.py"
    script.write_text(REGISTER + code, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, str(script)]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == wanted
