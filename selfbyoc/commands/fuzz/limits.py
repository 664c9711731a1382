"""What TVM itself cannot do, in one place: a case that ends so is counted, and is no finding.

What TVM alone refuses, too, needs no entry: it is asked whenever ours raises, crashes or differs.
Here is only what TVM does to our build and not to its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...machine.features import features_of
from ...tvm import GENERATION
from ...tvm.types import Target
from .infer import infer
from .program import Program


@dataclass(frozen=True)
class Limit:
    """A limit of one generation: what the error says, and why it is TVM's."""

    generation: str
    text: str  # a regular expression
    why: str


LIMITS: tuple[Limit, ...] = (
    Limit(
        "relax",
        "has been used before definition",
        "CompactBufferAllocation gives a kernel's buffer an extent with a loop's variable in it",
    ),
)


def saturates(program: Program, target: Target) -> bool:
    """Whether TVM 0.17 multiplies its bytes in sums of 16 bits (docs/makers/tvm-notes.md)."""
    if GENERATION != "relay" or "avx512vnni" in features_of(target):
        return False
    types = infer(program)
    products = (n for n in program.nodes if n.kind in ("conv2d", "dense", "batch_matmul"))
    return any(types[n.inputs[0]][0][1] in ("int8", "uint8") for n in products)


_IN_SINGLE = {"relay": ("layer_norm", "batch_norm"), "relax": ("rms_norm",)}


def narrows(program: Program) -> bool:
    """Whether TVM computes some of a float64 in float32: 0.17 the epsilon of layer_norm and
    batch_norm, 0.27 all of rms_norm (docs/makers/tvm-notes.md).
    """
    types = infer(program)
    norms = (n for n in program.nodes if n.kind in _IN_SINGLE[GENERATION])
    return any(types[n.inputs[0]][0][1] == "float64" for n in norms)


def widens(program: Program) -> bool:
    """Whether TVM 0.27 makes int64 of an average of int32 (docs/makers/tvm-notes.md)."""
    types = infer(program)
    pools = (n for n in program.nodes if n.kind in ("avg_pool2d", "global_avg_pool2d"))
    of_integers = any(types[n.inputs[0]][0][1] == "int32" for n in pools)
    return of_integers and GENERATION == "relax"


def truncates(program: Program) -> bool:
    """Whether floats are made integers by a planted dtype: rounding decides which."""
    plant = program.plant
    to_integers = plant is not None and "dtype" in plant.name and "int" in str(plant.value)
    return to_integers and any("float" in program.nodes[i].dtype for i in program.leaves())


def limit_of(text: str) -> Limit | None:
    """The limit that an error's text is, on the generation at hand."""
    for limit in LIMITS:
        if limit.generation == GENERATION and re.search(limit.text, text):
            return limit
    return None
