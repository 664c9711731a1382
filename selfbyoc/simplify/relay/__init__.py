"""Relay: the rewritings that its IR alone needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relay

from ...ir.relay.rewrite import rewritten
from .equal_casts import EqualCasts
from .inline import without_primitives
from .integers import integers_as_levels
from .joined_parts import requantised_by_parts
from .lowered import as_lowered
from .multiplied import outputs_apart
from .multipliers import multipliers_as_scales
from .requantised import scales_by_channel
from .zero_points import around_zero_points

Passes = tuple[Callable[[Any], Any], ...]

BEFORE_HALVES: Passes = (without_primitives, relay.transform.InferType())
BEFORE_LEVELS: Passes = (
    lambda mod: rewritten(mod, as_lowered),
    lambda mod: rewritten(mod, multipliers_as_scales),
    requantised_by_parts,
    lambda mod: rewritten(mod, EqualCasts()),
    lambda mod: rewritten(mod, integers_as_levels),
    lambda mod: rewritten(mod, around_zero_points),
    lambda mod: rewritten(mod, scales_by_channel),
    lambda mod: rewritten(mod, outputs_apart),
)
AFTER_FOLDING: Passes = ()
LAST: Passes = ()
