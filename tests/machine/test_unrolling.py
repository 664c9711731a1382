"""LLVM leaves the loops of kernels as they are, whatever its model of the CPU would unroll."""

import pytest

from selfbyoc.machine.features import features_of, known_cpus
from selfbyoc.machine.unrolling import without_unrolling
from selfbyoc.tvm import make_target, target_dict

ZEN = [cpu for cpu in ("znver3", "znver4", "znver5") if cpu in known_cpus()]  # LLVM 10 has none


@pytest.mark.parametrize("cpu", ZEN)
def test_the_same_instructions_by_another_model(cpu):
    mattr = ["-avx512f"] if cpu != "znver3" else ["-fma"]
    target = make_target({"kind": "llvm", "mcpu": cpu, "mattr": mattr, "num-cores": 2})
    found = without_unrolling(target)
    assert target_dict(found)["mcpu"] == "znver2"
    assert target_dict(found)["num-cores"] == 2
    assert features_of(found) == features_of(target)


@pytest.mark.parametrize(
    "target",
    [
        *(f"llvm -mcpu={cpu}" for cpu in ZEN if cpu != "znver3"),  # 32 registers hold two steps
        "llvm -mcpu=haswell",
        "llvm -mcpu=znver2",
        "llvm",
        "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1",
        "c",
    ],
)
def test_other_targets_stay(target):
    target = make_target(target)
    assert without_unrolling(target) is target
