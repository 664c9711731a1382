"""How models are built and called with the TVM at hand, as `roads`, and in which variants."""

from selfbyoc.tvm import GENERATION

if GENERATION == "relay":
    from . import relay as roads
    from .relay_variants import VARIANTS
else:
    from . import relax as roads  # type: ignore[no-redef]
    from .relax_variants import VARIANTS

__all__ = ["VARIANTS", "roads"]
