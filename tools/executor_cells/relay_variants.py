"""Other ways to build a Relay module."""

from __future__ import annotations

from typing import Any

from .relay import EXECUTORS
from .variant import Variant

_OFF = ("FuseOps", "FoldConstant", "AlterOpLayout", "SimplifyInference", "InferType", "Inline")
_ON = ("FastMath", "EliminateCommonSubexpr", "CombineParallelDense", "CanonicalizeOps")
_CONFIG: dict[str, Any] = {
    "relay.FuseOps.max_depth": 1,
    "relay.FuseOps.link_params": True,
    "tir.disable_vectorize": True,
    "tir.disable_storage_rewrite": True,
    "tir.instrument_bound_checkers": True,
    "tir.usmp.enable": True,
    "tir.noalias": False,
}


def _aot(interface: str, is_unpacked: bool) -> dict[str, Any]:
    return {"aot": {"interface-api": interface, "unpacked-api": is_unpacked}}


_OF_EXECUTORS = {
    "runtime crt": Variant(("graph", "aot"), options={"runtime": ("crt",)}),
    "runtime crt, system-lib": Variant(
        ("graph", "aot"), options={"runtime": ("crt", {"system-lib": True})}
    ),
    "runtime cpp, system-lib": Variant(
        ("graph", "aot"), options={"runtime": ("cpp", {"system-lib": True})}
    ),
    "link-params": Variant(("graph",), options={"graph": {"link-params": True}}),
    "unpacked-api": Variant(("aot",), options=_aot("packed", True)),
    "interface-api c": Variant(("aot",), options=_aot("c", False)),
    "interface-api c, unpacked-api": Variant(("aot",), options=_aot("c", True)),
    "interface-api c, unpacked-api, runtime crt": Variant(
        ("aot",), options={**_aot("c", True), "runtime": ("crt",)}
    ),
    "workspace-byte-alignment 16": Variant(
        ("aot",),
        options={"aot": {"interface-api": "packed", "workspace-byte-alignment": 16}},
    ),
    "target c": Variant(EXECUTORS, target="c"),
}
VARIANTS = {
    **_OF_EXECUTORS,
    **{f"without {n}": Variant(EXECUTORS, {"disabled_pass": [n]}) for n in _OFF},
    **{f"with {n}": Variant(EXECUTORS, {"required_pass": [n]}) for n in _ON},
    **{f"{n}={v}": Variant(EXECUTORS, {"config": {n: v}}) for n, v in _CONFIG.items()},
}
