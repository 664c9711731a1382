"""Of the TVM at hand: constants computed once, as `fold`, what a slice reads, as `cut_of`, and the
rewritings that its IR alone needs: before halves, before levels, after folding and at the end.
"""

from ..tvm import GENERATION

if GENERATION == "relay":
    from .relay import AFTER_FOLDING, BEFORE_HALVES, BEFORE_LEVELS, LAST
    from .relay.cuts import cut_of
    from .relay.folding import fold
else:
    from .relax import AFTER_FOLDING, BEFORE_HALVES, BEFORE_LEVELS, LAST
    from .relax.cuts import cut_of
    from .relax.folding import fold

__all__ = ["AFTER_FOLDING", "BEFORE_HALVES", "BEFORE_LEVELS", "LAST", "cut_of", "fold"]
