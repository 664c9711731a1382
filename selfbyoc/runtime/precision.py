"""The numbers that `build` computes with: how weights are held, by what sums become levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import InputError
from ..graph import HALVES
from ..partition import is_partitioned
from ..partition.generation import ir
from ..partition.source_names import names_of, with_names
from ..simplify.combined_scales import with_combined_scales
from ..simplify.few_bits import NAMES, with_few_bits
from ..simplify.halves import with_half_weights
from ..tvm import GENERATION
from ..tvm.types import IRModule, NDArray

WEIGHTS = ("float32", *HALVES, *NAMES)  # how those of float32 are held
ACTIVATIONS = ("float32", "int8")
REQUANTIZE = ("stepwise", "combined")


@dataclass(frozen=True)
class Precision:
    """The arguments of `build` by these names.

    Raises InputError for one that is none of those, or not beside the others.
    """

    weights: str = WEIGHTS[0]
    group: int = 32
    activations: str = ACTIVATIONS[0]
    requantize: str = REQUANTIZE[0]
    symmetric: bool = False

    def __post_init__(self) -> None:
        _check("weights", self.weights, WEIGHTS)
        if self.weights == "bfloat16" and GENERATION == "relay":
            raise InputError("weights: bfloat16 needs Relax; TVM 0.17 makes no vectors of it")
        beside = f" beside weights of {self.weights}"
        of_few_bits = self.weights in NAMES
        _check("activations", self.activations, ACTIVATIONS[: 2 if of_few_bits else 1], beside)
        _check("requantize", self.requantize, REQUANTIZE)
        if of_few_bits and (type(self.group) is not int or self.group < 8 or self.group % 8):
            raise InputError(f"group: expected a multiple of 8, found {self.group!r}")
        if self.symmetric and not of_few_bits:
            known = " or ".join(NAMES)
            raise InputError(f"symmetric: expected weights of {known}, found {self.weights}")

    @property
    def exported(self) -> str:
        """How a library's file holds what is still of float32."""
        return "float16" if self.weights == "float16" else WEIGHTS[0]

    def of(
        self, mod: IRModule, params: Mapping[str, NDArray] | None
    ) -> tuple[IRModule, Mapping[str, NDArray] | None]:
        """The module, before it is partitioned, of these numbers, and parameters that are left."""
        if is_partitioned(mod):
            self._check_partitioned()
            return mod, params
        rewritings: list[Callable[[IRModule], IRModule]] = []
        if self.requantize == "combined":
            rewritings.append(with_combined_scales)
        if self.weights in NAMES:
            how = NAMES[self.weights], self.group, self.activations, self.symmetric
            rewritings.append(lambda m: with_few_bits(m, *how))
        if self.weights in HALVES:
            rewritings.append(lambda m: with_half_weights(m, self.weights))
        if not rewritings:
            return mod, params
        made = ir.prepare(mod, params)
        for rewriting in rewritings:
            made = rewriting(made)
        # On Relay a pass forgets the module's attributes.
        return with_names(made, names_of(mod)), None

    def _check_partitioned(self) -> None:
        """What is partitioned is rewritten no more; its file alone may hold halves."""
        combined = self.requantize == "combined"
        if combined or self.weights not in ("float32", "float16"):
            text = "this module is partitioned already; give what it was before"
            raise InputError(f"{'requantize' if combined else 'weights'}: {text}")


def _check(name: str, found: str, known: tuple[str, ...], beside: str = "") -> None:
    if found not in known:
        raise InputError(f"{name}: expected {' or '.join(known)}{beside}, found {found!r}")
