"""0.17's walk over nodes of some classes, for `walk` of this folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tir

from .types import TirNode

# TVM's names of these have no `tir.`
_KEYS = {"IntImm": "IntImm", "FloatImm": "FloatImm"}


def walk_kinds(node: TirNode, visit: Callable[[TirNode], object], kinds: Sequence[str]) -> None:
    """Call `visit` on the nodes under one whose class has such a name, inner ones first, on each
    once.

    Only a transform, here of nothing, tells TVM which nodes are asked for. A walk calls Python for
    every one, a fifth of a build (nine composites, 13.7 and 11.1 s of CPU time).
    """
    met = set()

    def once(found: TirNode) -> None:  # a transform comes by as often as a node is used
        if (at := found.handle.value) not in met:
            met.add(at)
            visit(found)

    stmt = node if isinstance(node, tir.Stmt) else tir.Evaluate(node)
    known = [_KEYS.get(kind, f"tir.{kind}") for kind in kinds if hasattr(tir, kind)]
    if known:
        tir.stmt_functor.ir_transform(stmt, None, once, known)
