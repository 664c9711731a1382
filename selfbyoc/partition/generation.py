"""The partitioner of the TVM generation at hand, as `ir`, the way back, as `inline`, what replaces
constants, as `constants` and `few_bits`, and the functions beside main, as `steps`.
"""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import _relay as ir
    from . import _relay_constants as constants
    from . import _relay_few_bits as few_bits
    from . import _relay_steps as steps
    from . import _relay_unfuse as inline
else:
    from . import _relax as ir  # type: ignore[no-redef]
    from . import _relax_constants as constants  # type: ignore[no-redef]
    from . import _relax_few_bits as few_bits  # type: ignore[no-redef]
    from . import _relax_steps as steps  # type: ignore[no-redef]
    from . import _relax_unfuse as inline  # type: ignore[no-redef]

__all__ = ["constants", "few_bits", "inline", "ir", "steps"]
