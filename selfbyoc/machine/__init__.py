"""What a plan needs to know of a CPU, as one value made from the target.

Vectors and registers follow from the features that LLVM's code for the target may use; the rest of
a core from a table by its name (`cores.py`); caches and cores from the host where the target is the
host's own CPU. What is not known is the least of the CPU's kind.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, lru_cache

from ..common.threads import core_count
from ..tvm import current_target, make_target, target_dict
from ..tvm.own_ops import BFLOATS, BYTES, BYTES_OF_7, PAIRS, SIGNED_BYTES
from ..tvm.types import Attr, Target
from . import host
from .cores import Core, core_of
from .features import architecture, features_of
from .products import Product, products

MOST_FEEDING_CORES = 16  # cores that read as much as the memory gives
MOST_UNEVEN = 1.1  # time of the busiest core, where all might be equally busy
LINE = 64  # bytes of a cache line, of all these CPUs (apple-m1 has pairs of them)


@dataclass(frozen=True)
class Machine:
    """A CPU: vectors, registers and units of a core, the caches, and how many cores there are."""

    vector_bytes: int
    vector_registers: int
    cores: int = 1
    l1_bytes: int = 32 << 10  # of a core, data
    l2_bytes: int = 256 << 10  # of a core
    l3_bytes: int = 0  # of all cores; 0: none, or not known
    multiply_adds: int = 1  # vectors a cycle; without FMA a multiplication and an addition
    loads: int = 1  # vectors a cycle from L1
    latency: int = 5  # cycles until the next multiply-add may use the sum
    fused: bool = True  # multiplies and adds in one instruction
    broadcasts: bool = False  # an operand of a multiply-add may be one element in memory
    memory_bandwidth: float = 4.0  # bytes a cycle to one core
    l2_bandwidth: float = 32.0  # the same from L2
    l3_bandwidth: float = 12.0  # the same from L3
    division: int = 10  # cycles from one vector of quotients to the next
    known: tuple[Product, ...] = ()  # of words, one of each kind
    bfloat16: float = 0.0  # vectors of words of two a cycle, which are multiplied and added
    in_pairs: bool = False  # LLVM loads neighbouring elements at once (ldp), a register each
    copies: bool = False  # a product overwrites one of its operands
    has_float16: bool = True  # makes vectors of floats of it in an instruction

    @property
    def shared_bandwidth(self) -> float:
        """Bytes a cycle from memory to all cores."""
        return self.memory_bandwidth * min(self.cores, MOST_FEEDING_CORES)

    def unevenness(self, tasks: int) -> float:
        """Time of so many equal tasks, of that which they would take evenly spread over the
        cores.
        """
        return -(-tasks // self.cores) * self.cores / tasks

    def is_even(self, tasks: int, most: float = MOST_UNEVEN) -> bool:
        """Whether a number of equal tasks leaves no core without work for long."""
        return self.unevenness(tasks) <= most

    @property
    def products(self) -> str:
        """The kind of those of levels and weights of 8 bits."""
        return self._first(BYTES, SIGNED_BYTES)

    @property
    def products_of_7_bits(self) -> str:
        """The kind of those of levels and weights of 7 bits."""
        return self._first(BYTES_OF_7, SIGNED_BYTES)

    @property
    def sums_in_halves(self) -> bool:
        """Whether it multiplies bytes in one instruction and sums them in another."""
        kind = self.products_of_7_bits
        return kind == BYTES_OF_7 and self.product(kind).apart

    @property
    def products_of_bfloat16(self) -> str:
        """The kind of those of bfloat16; none where floats are as fast."""
        known = {made.kind for made in self.known}
        return BFLOATS if BFLOATS in known and 2 * self.bfloat16 > self.multiply_adds else ""

    def _first(self, *kinds: str) -> str:
        known = {made.kind for made in self.known}
        return next((kind for kind in kinds if kind in known), PAIRS)

    def product(self, kind: str) -> Product:
        """How it multiplies words of a kind."""
        return next((made for made in self.known if made.kind == kind), Product(kind))

    def lanes(self, dtype: str) -> int:
        """Elements of a dtype in one vector register."""
        return max(1, self.vector_bytes * 8 // _bits(str(dtype)))

    @property
    def in_flight(self) -> int:
        """Multiply-adds under way at once: a register tile needs as many sums to keep busy."""
        return self.multiply_adds * self.latency


@cache
def _bits(dtype: str) -> int:
    return int("".join(c for c in dtype if c.isdigit()) or 32)


def machine(target: Target) -> Machine:
    """The machine that a target describes. Raises TargetError for a -mcpu that LLVM lacks."""
    here = (host.cpu(), host.core(), core_count(), *host.cache_bytes().items())
    return _machine(json.dumps(target_dict(make_target(target))), here)


@lru_cache(maxsize=64)  # a kernel of open sizes asks a thousand times
def _machine(told: str, _: tuple[object, ...]) -> Machine:
    """As a target's JSON says; and this machine, of itself."""
    data = json.loads(told)
    mcpu = str(data.get("mcpu") or "")
    name = host.core() if mcpu and mcpu == host.cpu() else mcpu
    names = f"{name} {data.get('mtriple') or ''}"
    features = features_of(data)
    width, registers = _vectors(features, architecture(data))
    core = core_of(names, width)
    caches = _caches(data, core)
    return Machine(
        vector_bytes=width,
        vector_registers=registers,
        cores=int(data.get("num-cores") or 0) or core_count(),
        l1_bytes=caches[1],
        l2_bytes=caches[2],
        l3_bytes=caches[3],
        multiply_adds=core.multiply_adds,
        loads=core.loads,
        latency=core.latency,
        fused=architecture(data) != "x86_64" or "fma" in features or width == 64,
        copies=architecture(data) == "x86_64" and "avx" not in features,
        broadcasts=width == 64,
        has_float16=architecture(data) != "x86_64" or "f16c" in features,
        known=products(data),
        bfloat16=core.bfloat16,
        in_pairs=architecture(data) == "aarch64",
        memory_bandwidth=core.memory_bandwidth,
        l2_bandwidth=core.l2_bandwidth,
        l3_bandwidth=core.l3_bandwidth,
        division=core.division,
    )


LEAST = Machine(16, 16)  # whatever it runs all of these CPUs run


def machine_at_hand() -> Machine:
    """What a compute is stacked for: the current target's machine, or the least one of all."""
    target = current_target()
    return LEAST if target is None else machine(target)


def _vectors(features: frozenset[str], architecture: str) -> tuple[int, int]:
    """Bytes of a vector register, and how many of them there are."""
    if "avx512f" in features:
        return 64, 32
    if "avx2" in features:
        return 32, 16
    if architecture == "aarch64":
        return 16, 32  # NEON; LLVM's fixed vectors use no more of SVE
    return 16, 16  # SSE2: every x86-64 has it


def _caches(data: dict[str, Attr], core: Core) -> dict[int, int]:
    """Bytes by level: what this machine tells of itself when it is the target, else the table's."""
    mcpu = str(data.get("mcpu") or "")
    found = host.cache_bytes() if mcpu and mcpu == host.cpu() else {}
    known = {1: core.l1 << 10, 2: core.l2 << 10, 3: core.l3 << 10}
    return {**known, **{level: size for level, size in found.items() if level in known}}
