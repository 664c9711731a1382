"""Relax: main, simplified; the rewritings in the order in which they run."""

from __future__ import annotations

from tvm import relax

from ...tvm import tvm
from .bounds import BoundsAreOps
from .columns import columns_apart
from .declared_functions import PrimFuncsAreOps
from .folding import fold
from .halves import with_floats
from .inline import inlined, primitives
from .integer_ranges import WhatRangesDecide
from .integers import IntegersAsLevels
from .levels import LevelsAsRead, with_float_weights
from .one_row import ImagesOfOneRow
from .taps import TapsThatMeet

__all__ = ["main_by", "simplified", "with_float_weights"]


def simplified(mod: tvm.IRModule) -> tvm.IRModule:
    """A normalised module, simplified; the one that is given is not touched."""
    mod = with_floats(_without_primitives(mod))
    # FuseOpsByPattern sees dataflow blocks only, and a main that is written by hand may have none.
    mod = relax.transform.ConvertToDataflow(min_size=1)(mod)
    mod = main_by(PrimFuncsAreOps(mod), relax.transform.CanonicalizeBindings()(mod))
    mod = main_by(WhatRangesDecide(), main_by(BoundsAreOps(mod), mod))
    mod = main_by(IntegersAsLevels(), mod)
    mod = columns_apart(fold(main_by(LevelsAsRead(), mod)))
    mod = main_by(TapsThatMeet(), main_by(ImagesOfOneRow(), mod))
    # Importers leave dead bindings (indices of PyTorch's max_pool2d): they would count as readers.
    return relax.transform.DeadCodeElimination()(mod)


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
