"""Tables of embeddings as one constant with the weight of a product: models that tie both have
them once, and so should a library.

    take(table, ids, axis=0), dense(x, table)  ->  embedding(table, ids), dense(x, table)

Who reads a table by `embedding` reads it as it is packed for the product (the composite of this
name).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import numpy as np

from ..ir.generation import ops_in, rewritten
from ..ir.rewriting import Editor, Made
from ..tvm.indices import USUAL_MODE
from ..tvm.types import Expr, IRModule
from .weights import PRODUCTS, weight_as_it_lies

Array = np.ndarray
LEAST = 1 << 20  # elements of a table: of less there is little to save
NARROW = 256  # elements of a row; of cosines of positions, which levels would spoil, it has fewer
_STEP = 509  # rows between those that are compared first


def with_shared_tables(mod: IRModule) -> IRModule:
    """The module, whose look-ups of rows of a product's weight are embeddings."""
    if "take" not in ops_in(mod):
        return mod
    tables: dict[Expr, Array] = {}
    shared: set[Expr] = set()

    def note(made: Made, to: Editor) -> None:
        if (table := table_of(made, to)) is not None:
            tables[made.args[0]] = table

    def note_shared(made: Made, to: Editor) -> None:
        if made.kind in PRODUCTS and to.shape(made.args[1]) in sizes:  # of others nothing is read
            weight = weight_as_it_lies(made, to)
            shared.update(node for node, table in tables.items() if _are_equal(table, weight))

    rewritten(mod, note)
    sizes = [list(shape) for table in tables.values() for shape in (table.shape, table.T.shape)]
    if tables:
        rewritten(mod, note_shared)
    return rewritten(mod, partial(_of_shared, shared=shared)) if shared else mod


def _of_shared(made: Made, to: Editor, shared: Collection[Expr]) -> Expr | None:
    if table_of(made, to) is None or made.args[0] not in shared:
        return None
    return to.emit("embedding", *made.args)


def table_of(made: Made, to: Editor) -> Array | None:
    """The constant [units, depth] of which an op of TVM's looks up rows; None of any other op, and
    of one that says itself what ids out of range mean.
    """
    if made.name != "take" or str(made.raw["mode"]) != USUAL_MODE or made.raw["axis"] is None:
        return None
    if int(made.raw["axis"]) or int(made.raw.get("batch_dims", 0) or 0):
        return None
    table = to.array(made.args[0])
    if table is None or table.ndim != 2 or table.size < LEAST:
        return None
    return table if table.dtype == np.float32 else None


def table_to_hold(made: Made, to: Editor) -> tuple[Array | None, bool]:
    """The table of a look-up of wide rows, which may be held in fewer bits, and whether a product
    reads it, too; None of any other op.
    """
    if made.kind == "embedding":
        return to.array(made.args[0]), True
    table = table_of(made, to)
    return (table if table is not None and table.shape[1] >= NARROW else None), False


def _are_equal(one: Array, other: Array | None) -> bool:
    """Whether they hold the same; a few rows say so of most that do not."""
    if other is None or one.shape != other.shape:
        return False
    return np.array_equal(one[::_STEP], other[::_STEP]) and np.array_equal(one, other)
