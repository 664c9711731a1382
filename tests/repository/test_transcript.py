"""docs/transcript.md: its lines run in an environment of their own, and print what it says."""

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from scripts import tool

from selfbyoc.tvm import GENERATION

PAGE = Path(__file__).parents[2] / "docs/transcript.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
MARK = "---- the next block"
# What another machine, another TVM or another day prints otherwise.
VARIES = (
    (r"[\d.]+ (MB|s|ms)\b", r"N \1"),
    (r"TVM \S+ (\(relax\)), LLVM \S+", r"TVM \1"),
    (r"target: .*", "target"),
    (r" on (one thread|\d+ threads)(, while other programs ran)?", ""),
)


def plain(text):
    """Lines without what varies and what a terminal does not show."""
    for pattern, instead in VARIES:
        text = re.sub(pattern, instead, text)
    return [line for line in map(str.rstrip, text.splitlines()) if line]


@pytest.mark.skipif(GENERATION == "relay", reason="TVM 0.17 is on no index")
@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="needs onnxruntime")
def test_from_an_empty_environment_to_numbers(tmp_path):
    """The packages that the wheel needs are lent by this environment: no index is asked. What the
    page leaves in the environment at its end is lent as well, but not selfbyoc.
    """
    pytest.importorskip("setuptools", minversion="77", reason="needs setuptools 77")
    (tmp_path / "build").mkdir()
    tool("package").built(tmp_path / "build", tmp_path / "dist")
    (environment, *rest) = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    lent = sysconfig.get_path("purelib")
    lent = f"echo '{lent}' > \"$(echo env/lib/python*/site-packages)/lent.pth\"\n"
    script = f"echo {MARK}\n".join([environment[0] + lent, *(code for code, _ in rest)])
    env = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "PYTHONHOME")}
    env |= {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "COLUMNS": "120"}
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    done = subprocess.run(
        ["bash", "-e", "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    printed = done.stdout.split(MARK)
    for (code, wanted), found in zip([environment, *rest], printed, strict=True):
        assert plain(found) == plain(wanted), code
