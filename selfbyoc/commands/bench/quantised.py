"""Workloads in levels of 8 bits: a whole model of floats as ONNX Runtime's quantiser makes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ...common.optional import extra
from ...models.quantize import Options, quantize
from .inputs import inputs_of
from .workload import Workload

if TYPE_CHECKING:
    import onnx

LEVELS = "levels"
BATCHES = 4  # of random inputs, from which ranges of activations are found


def in_levels(floats: Workload, suffix: str = "int8", dynamic: bool = False) -> Workload:
    """A workload of levels beside the one of floats: static, by channel, or `dynamic`."""

    def model() -> onnx.ModelProto:
        onnx = extra("onnx")
        with TemporaryDirectory() as folder:
            source, made = Path(folder) / "floats.onnx", Path(folder) / "levels.onnx"
            found = floats.model()
            onnx.save(found, str(source))
            batches = [inputs_of(found, seed) for seed in range(1, 1 + BATCHES)]
            quantize(source, made, batches, Options(dynamic=dynamic))
            return onnx.load(str(made))

    name = f"{floats.name} {suffix}"
    return replace(
        floats, name=name, group=LEVELS, model=model, truth="unoptimised", floats=floats.name
    )


def variants(whole: list[Workload], dynamic: tuple[str, ...]) -> Iterator[Workload]:
    """Of each whole model a static one, of those named a dynamic one too."""
    for floats in whole:
        yield in_levels(floats)
        if floats.name in dynamic:
            yield in_levels(floats, "dynamic int8", dynamic=True)
