"""Of the TVM at hand: what reads its IR, as `ir`, what writes it, as `writer`, and what registers
ops in it, as `registrar`.
"""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import _relay as ir
    from . import _relay_emit as writer
    from . import _relay_register as registrar
else:
    from . import _relax as ir  # type: ignore[no-redef]
    from . import _relax_emit as writer  # type: ignore[no-redef]
    from . import _relax_register as registrar  # type: ignore[no-redef]

__all__ = ["ir", "registrar", "writer"]
