"""Graph to simpler graph, before anything is matched.

A rewriting is a function of a module. Most are said once, op by op (ir/rewriting.py); what only one
generation's IR needs, or can say, is in `relax/` or `relay/`. This is the list that runs them.
"""

from __future__ import annotations

from ..ir.generation import rewritten
from ..tvm.types import IRModule
from .between_reshapes import between_reshapes
from .branches import without_branches
from .choices import made_choices
from .embeddings import with_shared_tables
from .factors import factors_of_queries
from .gathered_levels import rows_of_levels
from .generation import AFTER_FOLDING, BEFORE_HALVES, BEFORE_LEVELS, LAST, fold
from .grouped_queries import VIEWS, grouped_queries
from .halves import with_floats
from .hidden_scores import hidden_scores
from .levels import LevelsAsRead
from .means import MeansOfImages
from .one_row import ImagesOfOneRow
from .padding import padded_by_itself
from .regions import in_regions
from .rotary import rotated_halves
from .taps import without_idle_taps
from .transposes import joined_transposes
from .views_of_batches import views_of_batches
from .views_of_products import views_of_products
from .where import where
from .zero_divisors import DIVISIONS, without_zero_divisors

_LEVELS = ("dequantize", "quantize")
_WITHOUT_ZEROS = where(DIVISIONS, lambda: without_zero_divisors)

REWRITINGS = (
    *BEFORE_HALVES,
    with_floats,
    where(("nn.pad",), lambda: padded_by_itself),
    *BEFORE_LEVELS,
    where(("mean",), MeansOfImages),
    where(_LEVELS, lambda: rows_of_levels),
    where(_LEVELS, LevelsAsRead),
    _WITHOUT_ZEROS,
    fold,
    _WITHOUT_ZEROS,  # some are computed from constants
    *AFTER_FOLDING,
    with_shared_tables,
    lambda mod: rewritten(mod, without_branches),
    lambda mod: rewritten(mod, ImagesOfOneRow()),
    where(("where",), lambda: made_choices),
    where(("softmax",), lambda: hidden_scores),
    where(("negative",), lambda: rotated_halves),
    where(("broadcast_to",), lambda: grouped_queries),
    where(("reshape",), lambda: between_reshapes),
    where(VIEWS, lambda: views_of_products),
    where(VIEWS, lambda: views_of_batches),
    where(("matmul", "batch_matmul"), lambda: factors_of_queries),
    where(("transpose",), lambda: joined_transposes),
    where(("conv2d",), lambda: without_idle_taps),
    where(("conv2d",), lambda: in_regions),
    *LAST,
)


def simplified(mod: IRModule) -> IRModule:
    """A normalised, typed module, simplified; the one that is given is not touched."""
    for rewriting in REWRITINGS:
        mod = rewriting(mod)
    return mod
