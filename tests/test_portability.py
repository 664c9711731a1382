"""Kernels for other CPUs: right where they can run here, vectors of the target where not."""

import sys
from pathlib import Path

import pytest

import selfbyoc
from selfbyoc._tvm import GENERATION

from harness import assert_close, needs, run_case  # isort: skip

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from portability import TARGETS, assembly, counts  # isort: skip

SOME = ("conv2d", "dense", "layer_norm", "max_pool2d")
BUILTIN = {composite.name: composite for composite in selfbyoc.BUILTIN}


def case_of(name):
    composite = BUILTIN[name]
    return composite, next(c for c in composite.cases if GENERATION in c.generations)


@pytest.mark.parametrize(
    "target", [pytest.param(n, marks=needs(t)) for n, t in TARGETS.items() if n != "aarch64"]
)
@pytest.mark.parametrize("name", SOME)
def test_other_cpus_of_x86(name, target):
    composite, case = case_of(name)
    run = run_case(composite, case, target=TARGETS[target])
    assert run.counts == {name: 1}
    assert_close(run)


@pytest.mark.parametrize("name", ["conv2d", "dense"])
def test_neon(name):
    """Cross-compiled: multiply-adds on vector registers, and no call for each element."""
    text = assembly(*case_of(name), TARGETS["aarch64"])
    multiplies, _ = counts(text, "aarch64")
    assert multiplies >= 8
    assert "fmla" in text
