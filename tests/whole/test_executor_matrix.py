"""Every built-in composite, by every executor at every opt_level, and after passes that a user may
run before partitioning (wishes A51, A57, A64): right, or refused with a reason.

Each composite has a process of its own (cells.py), for what a crash ends.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import selfbyoc
from selfbyoc.tvm import GENERATION

SUPPORT = Path(__file__).parents[1] / "support"
ALL = [c.name for c in selfbyoc.BUILTIN if any(GENERATION in case.generations for case in c.cases)]
# `make matrix` goes through all of them, half an hour or more.
NAMES = ALL if os.environ.get("SELFBYOC_MATRIX") else ["dense", "conv2d_add"]
LEVELS = "0,1,2,3"
if GENERATION == "relay":
    EXECUTORS, PASSES = "graph,vm,aot", "FoldConstant,AlterOpLayout,ConvertLayout,quantize"
else:
    EXECUTORS, PASSES = "bytecode,compiled", "FoldConstant,ConvertLayout,LegalizeOps"

# What TVM refuses, whatever the model: docs/makers/tvm-notes.md.
AT_LEVEL_0 = "Calls out of a let block are not supported"


def cells(folder, *arguments):
    """What a process says of its cells; a crash is an error that names the cell."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT / "no_torch"), *sys.path])}
    env["SELFBYOC_CACHE"] = str(folder)  # each kernel once, not once a cell
    command = [sys.executable, str(SUPPORT / "matrix_cells.py"), *arguments]
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
            assert cell["plain"], "TVM alone refuses it too, for this reason or an earlier one"
        else:
            assert "refused" not in cell, cell
            assert not any(cell["wrong"]), cell


@pytest.mark.parametrize("name", NAMES)
def test_levels_and_executors(name, tmp_path):
    """As it is, with weights as inputs and as constants."""
    said = cells(tmp_path, name, "inputs,constants", LEVELS, EXECUTORS)
    assert [s["counts"] for s in said if "counts" in s] == [{name: 1}] * 2
    judge(said, 2 * 4 * len(EXECUTORS.split(",")))


def test_all_executors(tmp_path):
    """The short form of the above. Weights of the AOT executor lie on 16 bytes: a crash, once."""
    said = cells(tmp_path, "dense", "constants", "3", EXECUTORS)
    assert [s["counts"] for s in said if "counts" in s] == [{"dense": 1}]
    judge(said, len(EXECUTORS.split(",")))


# Ops by which a pass may come between a composite and its match.
PUT = {
    "FoldConstant": {"transpose"},  # where it folded that of a weight and left the others
    "AlterOpLayout": set(),
    "ConvertLayout": set(),
    "LegalizeOps": {"call_tir"},
    "quantize": {"round"},
}


# What a pass of 0.17 says to some models, whoever is to build them: AlterOpLayout takes every dense
# for one of two axes, and relay.quantize quantizes what is quantized already.
TVM_REFUSES = {
    "AlterOpLayout": ("too many values to unpack (expected 2)",),
    "quantize": (
        "Input type should be one of [int8, uint8, int16, int32, int64] but was float32",
        "one or more error diagnostics were emitted",
        "Input shape cannot be empty",
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_after_passes(name, tmp_path):
    """What is still taken is right, and so is what TVM has instead; where a composite does not get
    its match, the report names an op that the pass has put there.
    """
    executors = EXECUTORS if GENERATION == "relay" else "bytecode"
    said = cells(tmp_path, name, PASSES, "3", executors)
    refused = {s["before"]: s["pass_refused"] for s in said if "pass_refused" in s}
    for pass_, why in refused.items():
        assert any(said in why for said in TVM_REFUSES[pass_]), why
    judge(said, (len(PASSES.split(",")) - len(refused)) * len(executors.split(",")))
    for done in (s for s in said if "counts" in s):
        assert done["counts"] == {name: 1} or PUT[done["before"]] & set(done["left"]), done
