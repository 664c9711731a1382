"""Relax: the rewritings that its IR alone needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relax

from ...tvm import tvm
from ..where import where
from .bounds import BoundsAreOps
from .columns import columns_apart
from .declared_functions import PrimFuncsAreOps
from .inline import inlined, primitives
from .integer_ranges import WhatRangesDecide
from .integers import IntegersAsLevels
from .known_sizes import known_sizes

Passes = tuple[Callable[[Any], Any], ...]


def main_by(mutator: relax.PyExprMutator, mod: tvm.IRModule) -> tvm.IRModule:
    """The module with its main as a mutator rewrites it."""
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), mutator.visit_expr(mod["main"]))
    return relax.transform.CanonicalizeBindings()(done)


def _without_primitives(mod: tvm.IRModule) -> tvm.IRModule:
    """The ops of primitive functions in main: of a subgraph that somebody marked as one function,
    as of ops that `unfuse` keeps apart.
    """
    names = primitives(mod)
    if not names:
        return mod
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), inlined(mod, names, lambda *_: {}))
    return done


BEFORE_HALVES: Passes = (_without_primitives,)
BEFORE_LEVELS: Passes = (
    # FuseOpsByPattern sees dataflow blocks only, and a main that is written by hand may have none.
    relax.transform.ConvertToDataflow(min_size=1),
    relax.transform.CanonicalizeBindings(),
    where(("shape_to_tensor",), lambda: known_sizes),
    lambda mod: main_by(PrimFuncsAreOps(mod), mod),
    lambda mod: main_by(BoundsAreOps(mod), mod),
    lambda mod: main_by(WhatRangesDecide(), mod),
    lambda mod: main_by(IntegersAsLevels(), mod),
)
AFTER_FOLDING: Passes = (columns_apart,)
# Importers leave dead bindings (indices of PyTorch's max_pool2d): they would count as readers.
LAST: Passes = (relax.transform.DeadCodeElimination(),)
