"""Pages of commands: they run, and print what the page says; docs/model-to-file.md in an
environment of its own.
"""

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

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "model-to-file.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
MARK = "---- the next block"
# What another machine, another TVM or another day prints otherwise.
VARIES = (
    (r"[\d.]+ (MB|s|ms)\b", r"N \1"),
    (r"TVM \S+ (\(relax\)), LLVM \S+", r"TVM \1"),
    (r"target: .*", "target"),
    (r"Kernels for llvm \S+:", "Kernels:"),
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


@pytest.mark.skipif(GENERATION == "relay", reason="the pages show Relax")
@pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="needs onnx")
@pytest.mark.parametrize("name", ["no-match.md", "slow.md"])
def test_commands_print_what_the_page_says(name, tmp_path):
    """What stands after a `$`, and takes longer, is not among them."""
    pairs = BLOCK.findall((DOCS / name).read_text(encoding="utf-8"))
    env = {**os.environ, "COLUMNS": "120", "PYTHONPATH": str(DOCS.parent)}
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    script = f"echo {MARK}\n".join(code for code, _ in pairs)
    done = subprocess.run(
        ["bash", "-e", "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for (code, wanted), found in zip(pairs, done.stdout.split(MARK), strict=True):
        assert plain(found) == plain(wanted), code
