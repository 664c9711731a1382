"""Ops that TVM's passes moved to blocked layouts, in the plain ones that their tensors came from.

    layout_transform(conv2d_NCHWc(layout_transform(x), layout_transform(w)))  ->  conv2d(x, w)

A layout_transform goes from the inputs of an op to its results, where the op may run on plain axes,
and meets the one that undoes it. Ops that may not read it as they did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.generation import rewritten
from ...ir.rewriting import Editor, Made
from ...ops.attrs import pair, quad
from ...ops.layout_text import letters_of, parts_of
from ...ops.reduce import reduced_axes
from ...tvm.types import Expr, IRModule
from .axes import ON_ELEMENTS
from .blocks import block_of, joined, plain, rank_of, through
from .generation import ir
from .seen import Blocks

CONVOLUTIONS = ("nn.conv2d", "nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc")
DENSE = "nn.contrib_dense_pack"
LAYOUTS = ("data_layout", "layout", "weight_layout")  # an op says at most one of them
_OF_NUMBERS = ("dequantize", "fixed_point_multiply", "quantize", "requantize")


class FoldedBack:
    """The rewriting; how many ops it folded back and the layouts that these name, and how many
    lowered functions were ops again before.
    """

    def __init__(self, raised: int = 0) -> None:
        self.count, self.raised, self.layouts = 0, raised, set[str]()
        self.blocks = Blocks()

    def __call__(self, made: Made, to: Editor) -> Expr | None:
        """An op without blocks."""
        if made.name == "layout_transform":
            done = self.blocks.moving(made, to)
            self.count += done is made.args[0]  # to the layout that it has
            return done
        if made.name in (*CONVOLUTIONS, DENSE):
            done = (_dense if made.name == DENSE else _convolution)(made, self.blocks, to)
        elif next(self.blocks.all_seen(made.args, to), None) is None:
            return None
        else:
            others = _on_elements if made.kind in ON_ELEMENTS else _in_its_layout
            done = _RULES.get(made.kind, others)(made, self.blocks, to)
        if done is not None:
            self.count += 1
            self.layouts |= {str(made.raw[name]) for name in LAYOUTS if name in made.raw}
        return done


def _convolution(made: Made, blocks: Blocks, to: Editor) -> Expr | None:
    """Of blocks of channels, its weight of blocks of both."""
    raw = made.raw
    data, kernel, out = (str(raw[f"{name}_layout"]) for name in ("data", "kernel", "out"))
    if data.isalpha() and kernel.isalpha():
        return None
    result = parts_of(out or data, "NCHW")
    if not _fits(made, data, kernel, to):
        return None
    x = blocks.in_letters(made.args[0], data, "NCHW", to)
    weight = blocks.in_letters(made.args[1], kernel, "OIHW", to)
    if result is None or x is None or weight is None:
        return None
    conv = to.emit(
        "conv2d", x, weight, strides=pair(raw["strides"]), padding=quad(raw["padding"]),
        dilation=pair(raw["dilation"]), groups=int(raw["groups"]), data_layout="NCHW",
        kernel_layout="OIHW", out_dtype=_dtype(raw),
    )  # fmt: skip
    return blocks.wrapped(made, conv, result, to)


def _fits(made: Made, data: str, kernel: str, to: Editor) -> bool:
    """Whether there are as many channels as weights for them: TVM fills a block of a depthwise
    weight's one.
    """
    layouts = (data, "NCHW", made.given[0]), (kernel, "OIHW", made.given[1])
    found = [(parts_of(text, letters), to.shape(x)) for text, letters, x in layouts]
    shapes = [joined(shape, parts) for parts, shape in found if parts and shape]
    if len(shapes) < 2 or None in (shapes[0][1], shapes[1][1]):
        return False
    return bool(shapes[0][1] == shapes[1][1] * int(made.raw["groups"]))


def _dtype(raw: Any) -> str | None:
    return str(raw["out_dtype"] or "") or None


def _dense(made: Made, blocks: Blocks, to: Editor) -> Expr | None:
    """Of a weight in blocks of units."""
    weight = blocks.in_letters(made.args[1], str(made.raw["weight_layout"]), "NC", to)
    if weight is None:
        return None
    return to.emit("dense", made.args[0], weight, out_dtype=_dtype(made.raw))


def _on_elements(made: Made, blocks: Blocks, to: Editor) -> Expr | None:
    """Of tensors of one layout, some of which may have fewer axes, and constants."""
    other = max(blocks.all_seen(made.args, to), key=lambda found: len(found.parts))
    pairs = zip(made.args, made.given, strict=True)
    args = [blocks.beside(arg, given, other, to) for arg, given in pairs]
    known = [arg for arg in args if arg is not None]
    if len(known) < len(args):
        return None
    return blocks.wrapped(made, to.again(made, known), other.parts, to)


def _of_numbers(made: Made, blocks: Blocks, to: Editor) -> Expr | None:
    """An op on elements that reads numbers besides."""
    found = blocks.seen(made.args[0], to)
    if found is None or any(to.shape(x) != [] for x in made.given[1:]):
        return None
    if made.raw.get("axis") not in (None, -1, 0):
        return None  # of numbers it means nothing, and may be none of the axes
    done = to.again(made, [found.x, *made.args[1:]])
    return blocks.wrapped(made, done, found.parts, to)


def _in_its_layout(made: Made, blocks: Blocks, to: Editor) -> Expr | None:
    """An op of one tensor that says in which layout it reads it: a pool, a resize."""
    found = blocks.seen(made.args[0], to)
    layout = str(made.raw.get("layout") or "")
    if found is None or any(map(to.is_tensor, made.given[1:])):
        return None
    parts = parts_of(layout, letters_of(layout)) if layout else None
    order = None if parts is None else through(parts, plain(rank_of(parts)), found.parts)
    out = str(made.raw.get("out_layout") or "")
    if order is None or out not in ("", layout):
        return None
    text = "".join(letters_of(layout)[order.index((axis, 0))] for axis in range(len(order)))
    changed = {"layout": text, **({"out_layout": text} if out else {})}
    done = to.again(made, [found.x, *made.args[1:]], **changed)
    return blocks.wrapped(made, done, found.parts, to)


def _reduction(made: Made, blocks: Blocks, to: Editor) -> Expr | None:
    """Over whole axes."""
    found = blocks.seen(made.args[0], to)
    if found is None or made.raw.get("exclude"):
        return None
    seen, keeps = found.parts, bool(made.attrs["keepdims"])
    axes = reduced_axes(made.attrs["axis"], len(seen))
    gone = {seen[at][0] for at in axes}
    if any((at in axes) != (axis in gone) for at, (axis, _) in enumerate(seen)):
        return None
    if keeps and any(block_of(seen, axis) > 1 for axis in gone):
        return None  # one element in blocks of several
    done = to.emit(made.kind, found.x, axis=tuple(sorted(gone)), keepdims=keeps)
    left = [part for part in seen if keeps or part[0] not in gone]
    order = sorted({axis for axis, _ in left})
    parts = tuple((order.index(axis), size) for axis, size in left)
    return blocks.wrapped(made, done, parts, to)


def _softmax(made: Made, blocks: Blocks, to: Editor) -> Expr | None:
    """Along an axis without blocks."""
    found = blocks.seen(made.args[0], to)
    if found is None:
        return None
    axis, size = found.parts[int(made.attrs["axis"]) % len(found.parts)]
    if size or block_of(found.parts, axis) > 1:
        return None
    return blocks.wrapped(made, to.again(made, [found.x], axis=axis), found.parts, to)


def _concatenate(made: Made, blocks: Blocks, to: Editor) -> Expr | None:
    """Of tensors of one layout; of blocked channels whole blocks."""
    fields = [x for arg in made.args for x in (to.fields(arg) or [arg]) if to.is_tensor(x)]
    known = list(blocks.all_seen(made.args, to))
    seen = known[0].parts
    if len(known) < len(fields) or any(other.parts != seen for other in known):
        return None
    axis, size = seen[int(made.attrs["axis"]) % len(seen)]
    if size:
        return None
    done = to.emit("concatenate", *(found.x for found in known), axis=axis)
    return blocks.wrapped(made, done, seen, to)


def _pad(made: Made, blocks: Blocks, to: Editor) -> Expr | None:
    """Of axes without blocks; Relay's second input is the value."""
    found = blocks.seen(made.args[0], to)
    if found is None:
        return None
    widths: list[Any] = [(0, 0)] * rank_of(found.parts)
    for (axis, _), width in zip(found.parts, made.attrs["pad_width"], strict=True):
        if any(width) and block_of(found.parts, axis) > 1:
            return None
        widths[axis] = tuple(width) if any(width) else widths[axis]
    attrs = {**made.attrs, "pad_width": tuple(widths)}
    done = to.emit(made.kind, found.x, *made.args[1:], **attrs)
    return blocks.wrapped(made, done, found.parts, to)


def folded_back(mod: IRModule) -> tuple[IRModule, FoldedBack]:
    """A prepared module without blocked layouts, and what that took."""
    ops, count = ir.raised(mod)
    rewriting = FoldedBack(count)
    return ir.finished(rewritten(ops, rewriting)), rewriting


_RULES: dict[str, Callable[[Made, Blocks, Editor], Expr | None]] = {
    **dict.fromkeys(_OF_NUMBERS, _of_numbers),
    "cast": _of_numbers,
    "concatenate": _concatenate,
    "max": _reduction,
    "mean": _reduction,
    "nn.pad": _pad,
    "softmax": _softmax,
    "sum": _reduction,
}
