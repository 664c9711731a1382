"""Other ways to build a Relax module."""

from __future__ import annotations

from typing import Any

from .relax import EXECUTORS
from .variant import Variant

_OFF = ("FuseOps", "FoldConstant", "LegalizeOps", "StaticPlanBlockMemory", "DeadCodeElimination",
        "RewriteDataflowReshape", "KillAfterLastUse")  # fmt: skip
_CONFIG: dict[str, Any] = {
    "tirx.disable_vectorize": True,
    "tirx.disable_storage_rewrite": True,
    "tirx.instrument_bound_checkers": True,
    "tirx.disable_assert": True,
    "tirx.noalias": False,
}
VARIANTS = {
    "pipeline zero": Variant(EXECUTORS, options={"pipeline": "zero"}),
    "pipeline default": Variant(EXECUTORS, options={"pipeline": "default"}),
    "system_lib": Variant(EXECUTORS, options={"system_lib": True}),
    "target c": Variant(EXECUTORS, target="c"),
    **{f"without {n}": Variant(EXECUTORS, {"disabled_pass": [n]}) for n in _OFF},
    **{f"{n}={v}": Variant(EXECUTORS, {"config": {n: v}}) for n, v in _CONFIG.items()},
}
