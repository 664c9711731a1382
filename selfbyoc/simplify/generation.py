"""The rewritings of the TVM generation at hand, as `ir`, and weights of few bits, as `few_bits`."""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import relay as ir
    from .relay import few_bits
else:
    from . import relax as ir  # type: ignore[no-redef]
    from .relax import few_bits  # type: ignore[no-redef]

__all__ = ["few_bits", "ir"]
