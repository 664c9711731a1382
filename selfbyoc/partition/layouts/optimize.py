"""`optimize_layouts`: transposes moved through the ops between them, where that moves less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...errors import InputError
from ...language.known import Composites, registry_of
from ...tvm import module_with_attr, tvm
from ...tvm.types import IRModule, NDArray
from .. import check_module, decide, is_partitioned
from ..generation import ir as partitioner
from .axes import KERNEL_LAYOUTS
from .record import LAYOUTS, Layouts
from .reorder import reordered

if TYPE_CHECKING:
    from ...language.match.match import Match


def optimize_layouts(
    mod: tvm.IRModule,
    params: Mapping[str, NDArray] | None = None,
    composites: Composites = None,
    *,
    data_layout: str | None = None,
) -> tvm.IRModule:
    """Reorder the axes of ops where that transposes fewer bytes; run it before
    `partition_for_tefuse`.

        transpose(relu(transpose(x) + bias))  ->  relu(x + bias'), with bias' made ahead of time

    mod          a Relay or Relax module with `main`; it is not changed
    params       weights by name, bound as constants: what is constant is transposed ahead of time
    composites   what is going to be partitioned by; ops that these fuse around a product stay
    data_layout  "NCHW" or "NHWC": convolutions in the other one move to it, their weights with them

    Raises InputError. What was gained is in `explain` and in `report`.
    """
    _check(mod, data_layout)
    registry = registry_of(composites)
    prepared = partitioner.prepare(mod, params)

    def matched(prepared: tvm.IRModule) -> list[Match]:
        return decide(prepared, registry, strict=False)[0]

    def again(new: tvm.IRModule) -> list[Match]:
        return matched(partitioner.prepare(new, None))

    done, told = reordered(prepared, matched(prepared), again, data_layout)
    return _told(done, told, mod)


def _check(mod: IRModule, data_layout: str | None) -> None:
    check_module(mod)
    if is_partitioned(mod):
        raise InputError("mod: this module is partitioned already; optimize its layouts before")
    if data_layout not in (None, *KERNEL_LAYOUTS):
        known = " or ".join(KERNEL_LAYOUTS)
        raise InputError(f"data_layout: expected {known}, found {data_layout!r}")


def _told(done: IRModule, told: Layouts, mod: IRModule) -> IRModule:
    """The new module with the attributes of the old one, and what was done."""
    for name, value in (mod.attrs or {}).items():
        done = done.with_attr(name, value)
    return module_with_attr(done, LAYOUTS, told.to_json())
