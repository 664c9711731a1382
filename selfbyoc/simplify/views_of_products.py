"""Products of matrices whose batch is a view of several axes have those axes.

    reshape(q, (24, n, d)) @ reshape(k, (24, d, m))  ->  reshape(q @ k, (24, n, m))

PyTorch's exporter writes each `torch.matmul` of four axes as one of three between views, which hide
that the heads of a model lie interleaved: they were copied before each product, a decoder's cache
for each token. Views go on to what reads the product, until another one undoes them. Relax only:
products of Relay have three axes.
"""

from __future__ import annotations

from ..ir.rewriting import Editor, Made, are_same, is_known, size_one
from ..ops.vocabulary import is_elementwise_kind
from ..tvm import GENERATION
from ..tvm.types import Expr
from .grouped_queries import PRODUCTS, VIEWS
from .views_of_batches import is_of_product


def views_of_products(made: Made, to: Editor) -> Expr | None:
    """A product of views, what is done to each element or row of it, and a view of that."""
    if GENERATION == "relay":
        return None
    if made.kind in VIEWS:
        return _joined(made, to)
    if made.kind in PRODUCTS:
        return _product(made, to)
    if made.kind == "softmax" or is_elementwise_kind(made.kind):
        return _of_product(made, to)
    return None


def _product(made: Made, to: Editor) -> Expr | None:
    sides = [_whole(arg, to) for arg in made.args[:2]]
    if None in sides:
        return None
    shapes = [to.shape(side) or [] for side in sides]
    if not are_same(*(shape[:-2] for shape in shapes)):
        return None
    return _viewed(to.again(made, [*sides, *made.args[2:]]), made, to)


def _of_product(made: Made, to: Editor) -> Expr | None:
    """An op of one such product, of numbers besides."""
    found = [_whole(arg, to) for arg in made.args]
    of_product = [n for n, x in enumerate(found) if x is not None and is_of_product(x, to)]
    if len(of_product) != 1 or "axes" in made.attrs:
        return None
    (at,) = of_product
    others = [arg for n, arg in enumerate(made.args) if n != at]
    if not all(not to.is_tensor(arg) or size_one(to, arg) for arg in others):
        return None
    changed = {}
    if "axis" in made.attrs:
        last = len(to.shape(made.call) or ()) - 1
        if made.kind != "softmax" or made.attrs["axis"] not in (-1, last):
            return None
        changed["axis"] = -1
    args = [found[at] if n == at else arg for n, arg in enumerate(made.args)]
    return _viewed(to.again(made, args, **changed), made, to)


def _whole(x: Expr, to: Editor) -> Expr | None:
    """What a value of three axes is a view of, that only joins those of the batch."""
    made, shape = to.made(x) if to.is_tensor(x) else None, to.shape(x) if to.is_tensor(x) else None
    if made is None or made.kind not in VIEWS or not is_known(shape) or len(shape) != 3:
        return None
    before = to.shape(made.args[0])
    if not is_known(before) or len(before) < 4 or not are_same(before[-2:], shape[-2:]):
        return None
    return made.args[0]


def _viewed(x: Expr, made: Made, to: Editor) -> Expr:
    return to.emit("reshape", x, shape=tuple(to.shape(made.call) or ()))


def _joined(made: Made, to: Editor) -> Expr | None:
    """A view of such a view: of what that is of, or that itself."""
    x, shape = _whole(made.args[0], to), to.shape(made.call)
    if x is None or not is_of_product(x, to) or not is_known(shape):
        return None
    return x if are_same(to.shape(x) or [], shape) else to.emit("reshape", x, shape=tuple(shape))
