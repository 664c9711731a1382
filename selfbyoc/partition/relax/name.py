"""Relax: a model's part of every symbol, so that two exported models load into one process."""

from __future__ import annotations

import hashlib
import math

from tvm import relax

from ...ir.relax import Constant
from ...tvm import constant_numpy, constant_tensor, structural_hash
from ...tvm.types import TirNode

_FEW = 1 << 12  # elements: all vectors, hardly a matrix


def model_name(main: relax.Function) -> str:
    """Equal for equal models. The numbers in large weights take no part: no kernel depends on them,
    and those of vgg19 take 0.3 s to hash.
    """
    found = hashlib.sha256(str(structural_hash(main, skip_tensor_content=True)).encode())

    def visit(node: TirNode) -> None:
        if isinstance(node, Constant) and math.prod(constant_tensor(node).shape) <= _FEW:
            found.update(constant_numpy(node).tobytes())

    relax.analysis.post_order_visit(main, visit)
    return f"m{found.hexdigest()[:12]}"
