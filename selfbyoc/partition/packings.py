"""How packed weights are made of what they were, for a file that holds the smaller ones
(runtime/file_weights/made.py).
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ..codegen.attributes import PACKED
from ..codegen.external import External, match_of, packed_params, read_attrs
from ..codegen.hook import hook
from ..codegen.pack import pack_functions
from ..codegen.parallel import at_once
from ..codegen.tuning_record import Tuned, told_by
from ..errors import SelfbyocError, one_line
from ..graph import Value, type_text
from ..language.decisions import for_every_size_of
from ..tvm import constant_tensor, tvm, view_of
from ..tvm.types import NDArray, PrimFunc, Target
from .generation import ir
from .original_weights import key_of, originals_of

logger = logging.getLogger(__name__)

# A packed weight of more than so many times the bytes of its original is made of it when a file is
# loaded. Winograd's have 1.8 to 4 times as many, words of two levels 2, layouts alone little more
# than 1. A ms of one thread (Zen 3) makes 1 MB, its pages of memory included, or reads 2 MB of a
# file for its checksum: a factor of 4 costs 1.0 ms for 0.75 MB, and one of 1.2 as much for 0.17.
GROWS = 1.5
# Bytes that a packing function has to save in a file: it has 8 to 11 KB itself.
LEAST = 1 << 16


@dataclass(frozen=True)
class Packing:
    """What a packed weight was, which has a number, and the function of that, of memory and of the
    packed one.
    """

    original: NDArray
    number: int
    function: PrimFunc


@dataclass(frozen=True, eq=False)
class _Place:
    """A packed argument of a kernel, and what its callers pass there."""

    source: External
    position: int
    packed: Value
    given: tuple[NDArray, ...]

    @property
    def was(self) -> Value:
        """The argument as it was."""
        return self.source.graph.inputs[self.position]

    @property
    def grows(self) -> bool:
        """Whether a file should not hold it."""
        return _bits(self.packed) > GROWS * _bits(self.was)

    def key(self, given: NDArray) -> str:
        """By which its original is known."""
        return key_of(view_of(given), _type(self.was))

    def function(self, target: Target) -> PrimFunc | None:
        """What packs it, as when the module was partitioned; None where it has the default schedule
        for what its composite raises.
        """
        source = self.source
        try:
            with target, for_every_size_of(source.sizes.values()), told_by(Tuned.of(source.attrs)):
                found = pack_functions(source.graph, match_of(source), [self.position])
        except SelfbyocError as err:
            logger.debug("%s: its weights stay packed: %s", source.symbol, one_line(err))
            return None
        return found.get(self.position)


def packings_of(mod: tvm.IRModule, target: Target) -> dict[str, Packing]:
    """Of a partitioned module: the key of a packed weight, without the type that it was of (as of
    `key_of`) -> how it is made. Of weights that grow, and of all that are made of the same.
    """
    kept = originals_of(mod)
    places = list(_places(mod)) if kept else []
    types = {_type(p.was) for p in places if p.grows}
    asked = [(p, given) for p in places if _type(p.was) in types for given in p.given]
    keys = at_once([partial(p.key, given) for p, given in asked])
    found = [(p, key) for (p, _), key in zip(asked, keys, strict=True) if key in kept]
    numbers = {node: n for n, node in enumerate(kept[key] for p, key in found if p.grows)}
    found = [(p, key) for p, key in found if kept[key] in numbers]
    functions = {p: p.function(target) for p in dict.fromkeys(p for p, _ in found)}
    return {
        key.removeprefix(_type(p.was)): Packing(
            constant_tensor(kept[key]), numbers[kept[key]], function
        )
        for p, key in found
        if (function := functions[p]) is not None
    }


def _places(mod: tvm.IRModule) -> Iterator[_Place]:
    """All packed arguments."""
    calls = ir.constant_args(mod)
    for name, func in ir.external_functions(mod).items():
        attrs = read_attrs(func.attrs)
        if not attrs.get(PACKED):
            continue
        source = hook.source_of(func, str(func.attrs["global_symbol"]), attrs)
        for i, packed in packed_params(source).items():
            given = [constant_tensor(site[i]) for site in calls.get(name, []) if i in site]
            yield _Place(source, i, packed.value, tuple(given))


def _type(value: Value) -> str:
    return type_text(value.shape, value.dtype)


def _bits(value: Value) -> int:
    found = re.search(r"\d+", value.dtype)
    return math.prod(value.shape) * int(found[0] if found else 8)
