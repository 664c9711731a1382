"""Every built-in composite, by every executor at every opt_level, and after passes that a user may
run before partitioning (WISHES A51, A57, A64): right, or refused with a reason.

Each composite has a process of its own (cells.py), for what a crash ends.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import selfbyoc
from selfbyoc._tvm import GENERATION

HERE = Path(__file__).parent
NAMES = [
    c.name for c in selfbyoc.BUILTIN if any(GENERATION in case.generations for case in c.cases)
]
LEVELS = "0,1,2,3"
if GENERATION == "relay":
    EXECUTORS, PASSES = "graph,vm,aot", "FoldConstant,AlterOpLayout,ConvertLayout,quantize"
else:
    EXECUTORS, PASSES = "bytecode,compiled", "FoldConstant,ConvertLayout,LegalizeOps"

# What TVM refuses, whatever the model: docs/tvm-notes.md.
AT_LEVEL_0 = "Calls out of a let block are not supported"
COMPILED = "Cannot find function"


def cells(folder, *arguments):
    """What a process says of its cells; a crash is an error that names the cell."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE / "no_torch"), *sys.path])}
    env["SELFBYOC_CACHE"] = str(folder)  # each kernel once, not once a cell
    command = [sys.executable, str(HERE / "cells.py"), *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0, f"{said[-1:]}: {done.returncode}\n{done.stderr[-2000:]}"
    return said


def judge(said, expected_cells):
    """Every cell is right, or TVM refuses it for a reason that is known."""
    finished = [s for s in said if "done" in s]
    assert len(finished) == expected_cells
    for cell in finished:
        _, level, executor = cell["done"]
        if (level, executor) == ("0", "vm"):
            assert AT_LEVEL_0 in cell["refused"]
            assert cell["plain"] == cell["refused"]
        elif executor == "compiled" and "refused" in cell:
            assert cell["refused"].startswith(COMPILED)
            assert "tefuse" in cell["refused"]
        else:
            assert "refused" not in cell, cell
            assert not any(cell["wrong"]), cell


@pytest.mark.parametrize("name", NAMES)
def test_levels_and_executors(name, tmp_path):
    """As it is, with weights as inputs and as constants."""
    said = cells(tmp_path, name, "inputs,constants", LEVELS, EXECUTORS)
    assert [s["counts"] for s in said if "counts" in s] == [{name: 1}] * 2
    judge(said, 2 * 4 * len(EXECUTORS.split(",")))
    if GENERATION == "relax":
        refused = {s["done"][2] for s in said if "refused" in s}
        assert refused == {"compiled"}


@pytest.mark.parametrize("name", ["dense", "softmax", "max_pool2d"])
def test_all_executors(name, tmp_path):
    """The short form of the above."""
    said = cells(tmp_path, name, "constants", "3", EXECUTORS)
    assert [s["counts"] for s in said if "counts" in s] == [{name: 1}]
    judge(said, len(EXECUTORS.split(",")))


@pytest.mark.parametrize("name", NAMES)
def test_after_passes(name, tmp_path):
    """What is still taken is right, and so is what TVM has instead; an op that is not taken is
    named as left.
    """
    executors = EXECUTORS if GENERATION == "relay" else "bytecode"
    said = cells(tmp_path, name, PASSES, "3", executors)
    judge(said, len(PASSES.split(",")) * len(executors.split(",")))
    for pass_ in (s for s in said if "counts" in s):
        assert pass_["counts"] or (pass_["left"] and name in NOT_TAKEN[pass_["before"]]), pass_


NOT_TAKEN = {}
