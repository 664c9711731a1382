"""Whole models built for so many cores, and what is counted of their schedules."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import selfbyoc
from selfbyoc.analysis.kernels import kernels
from selfbyoc.commands.bench.suite import suite
from selfbyoc.commands.bench.workload import Workload
from selfbyoc.models.onnx_model import import_onnx
from selfbyoc.tvm import make_target, target_dict

from .counting import Counted, Region, counted

FIVE = ("GoogLeNet", "SqueezeNet 1.1", "MobileNetV2", "ResNet-50", "MiniLM-L6")


def models(only: str = "") -> dict[str, Workload]:
    """The benchmark's five whole models whose names contain this, by what files are called."""
    found = (w for w in suite() if w.name in FIVE and only.lower() in w.name.lower())
    return {w.name.lower().replace(" ", "_"): w for w in found}


def build(name: str, workload: Workload, cores: int, folder: Path) -> None:
    """Write MODEL.CORES.so, and MODEL.CORES.json with its kernels."""
    target = make_target({**target_dict(selfbyoc.host_target()), "num-cores": cores})
    mod = selfbyoc.partition_for_tefuse(import_onnx(workload.model()), target=target)
    selfbyoc.build(mod, target).export_library(folder / f"{name}.{cores}.so")
    found = [asdict(counted(kernel, target, cores)) for kernel in kernels(mod)]
    (folder / f"{name}.{cores}.json").write_text(json.dumps(found))


def counts(name: str, cores: int, folder: Path) -> dict[str, Counted]:
    """What `build` wrote of a model's kernels, by symbol."""
    found = json.loads((folder / f"{name}.{cores}.json").read_text())
    regions = [tuple(Region(**region) for region in each["regions"]) for each in found]
    made = [Counted(**{**e, "regions": r}) for e, r in zip(found, regions, strict=True)]
    return {each.symbol: each for each in made}
