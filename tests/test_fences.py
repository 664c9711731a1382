"""No kernel touches memory outside its arguments: each lies at a page without access."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import selfbyoc
from selfbyoc import host
from selfbyoc._tvm import GENERATION

HERE = Path(__file__).parent
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE / "no_torch"), *sys.path])}
NAMES = [
    c.name for c in selfbyoc.BUILTIN if any(GENERATION in case.generations for case in c.cases)
]


def outside(target, *names):
    """What a process says of the kernels that end it: [composite, weights, side]."""
    command = [sys.executable, str(HERE / "fences.py"), target, *names]
    done = subprocess.run(command, env=ENV, capture_output=True, text=True, timeout=300)
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if said and said[-1] == {"done": True}:
        return []
    assert done.returncode < 0, done.stderr[-3000:]  # a signal, no exception
    return [said[-1]["run"]]


@pytest.mark.parametrize("target", ["host", "llvm -mcpu=haswell", "llvm"])
@pytest.mark.parametrize("name", NAMES)
def test_a_built_in_composite(name, target):
    if target != "host" and not host.runs(target):
        pytest.skip(f"this machine does not run {target}")
    assert not outside(target, name)


@pytest.mark.parametrize(("name", "side"), [("after", "end"), ("before", "begin")])
def test_an_access_outside_is_seen(name, side):
    assert outside("host", name) == [[name, "inputs", side]]
