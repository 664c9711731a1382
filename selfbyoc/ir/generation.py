"""Of the TVM at hand: what reads its IR, as `ir`, what writes it, as `writer`, and what registers
ops in it, as `registrar`.
"""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import relay as ir
    from .relay import emit as writer
    from .relay import register as registrar
else:
    from . import relax as ir  # type: ignore[no-redef]
    from .relax import emit as writer  # type: ignore[no-redef]
    from .relax import register as registrar  # type: ignore[no-redef]

__all__ = ["ir", "registrar", "writer"]
