"""Of the TVM at hand: what reads its IR, as `ir`, writes it, as `writer`, and rewrites it, and what
registers ops in it, as `registrar`.
"""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import relay as ir
    from .relay import emit as writer
    from .relay import register as registrar
    from .relay.rewrite import has_branches, ops_in, rewritten
else:
    from . import relax as ir  # type: ignore[no-redef]
    from .relax import emit as writer  # type: ignore[no-redef]
    from .relax import register as registrar  # type: ignore[no-redef]
    from .relax.rewrite import has_branches, ops_in, rewritten

__all__ = ["has_branches", "ir", "ops_in", "registrar", "rewritten", "writer"]
