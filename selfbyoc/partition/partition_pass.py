"""`Partition`: partition_for_tefuse as a pass, for pipelines of one's own."""

from __future__ import annotations

from collections.abc import Mapping

from ..language.known import Composites, listed
from ..tvm import tvm
from ..tvm.types import NDArray
from . import partition_for_tefuse
from .guard import Guard


@tvm.transform.module_pass(opt_level=0, name="Partition")
class Partition:
    """What the composites match, marked for the external compiler `tefuse`. The arguments are those
    of `selfbyoc.partition_for_tefuse`.

    On Relax `RunCodegen` is to follow; on Relay `relay.build` finds the marks by itself.
    """

    def __init__(
        self,
        params: Mapping[str, NDArray] | None = None,
        target: str | None = None,
        composites: Composites = None,
        pack: bool = True,
        guard: Guard | None = None,
    ) -> None:
        self.composites = listed(composites)
        self.params, self.target, self.pack, self.guard = params, target, pack, guard

    def transform_module(self, mod: tvm.IRModule, _: object) -> tvm.IRModule:
        """The pass."""
        return partition_for_tefuse(
            mod, self.params, self.target, self.composites, pack=self.pack, guard=self.guard
        )
