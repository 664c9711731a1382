"""Products of bfloat16 by `bfdot`, under qemu-user, and of words that another CPU's plan packed."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from harness import served

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.analysis.verify.run import Runner
from selfbyoc.codegen.cache.kernels import using
from selfbyoc.machine import host
from selfbyoc.runtime.tolerance import difference
from selfbyoc.tvm import make_target
from selfbyoc.tvm.own_ops import BFLOATS

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from other_cpus import aarch64  # isort: skip

BF16 = ml_dtypes.bfloat16
ZEN4, ARM = "llvm -mcpu=znver4", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-"


def ran(x, weight, packed_for, cpu, folder):
    """The one kernel's plan, and its result on a CPU; its weight was packed for one, too."""
    types = {"x": (x.shape, "float32"), "weight": (weight.shape, "bfloat16")}
    mod = selfbyoc.emit(
        lambda x, weight: op.dense(x, op.half_weight(weight)), types, {"weight": weight}
    )
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=packed_for))
    assert kernel.composite.name == "dense"
    target = make_target(cpu)
    inputs = kernel.source.graph.inputs
    given = [kernel.calls[0].get(n, x) for n in range(len(inputs))]
    with using(False):
        if host.runs(target):
            runner = Runner(kernel.source, target)
        else:
            served(aarch64.cannot_run())
            runner = aarch64.Emulated(kernel.source, target, folder)
        (found,) = runner(given)
    return kernel.schedule(target)[0].plan, found


@pytest.mark.parametrize(
    ("packed_for", "cpu"),
    [
        (f"{ARM}v2", f"{ARM}v2"),  # by bfdot
        (ZEN4, f"{ARM}v2"),
        (ZEN4, f"{ARM}n1"),  # which has none
        (f"{ARM}v2", "llvm -mcpu=haswell"),
    ],
)
@pytest.mark.parametrize(("rows", "depth", "units"), [(7, 131, 37), (33, 2, 520), (1, 64, 48)])
def test_numbers(tmp_path, packed_for, cpu, rows, depth, units):
    rng = np.random.default_rng(0)
    x, weight = (
        rng.standard_normal(shape).astype(BF16) for shape in ((rows, depth), (units, depth))
    )
    plan, found = ran(x.astype("float32"), weight, packed_for, cpu, tmp_path)
    assert plan.products == BFLOATS
    wanted = x.astype("float64") @ weight.astype("float64").T
    assert difference(found, wanted, "float32", depth) is None
