"""What is padded before a convolution by what its own padding holds, is padded by the convolution.

    conv2d(pad(x, 0))                            ->  conv2d(x, padding)
    conv2d(dequantize(pad(x, zero), s, zero))    ->  conv2d(dequantize(x, s, zero), padding)
    qnn.conv2d(pad(x, zero), weight, zero)       ->  qnn.conv2d(x, weight, zero, padding)

As TFLite's importer writes SAME padding, and models that PyTorch quantised an explicit pad.
"""

from __future__ import annotations

from ..ir.rewriting import Editor, Made, size_one
from ..ops.attrs import quad
from ..tvm.types import Attr, Expr

_CONVOLUTIONS = ("nn.conv2d", "qnn.conv2d")


def padded_by_itself(made: Made, to: Editor) -> Expr | None:
    """A convolution of what was padded, of what is in the middle."""
    if made.name not in _CONVOLUTIONS:
        return None
    image, *others = made.args
    floats, zero = to.made(image), others[1] if made.name == "qnn.conv2d" else None
    if floats is not None and floats.kind == "dequantize":
        image, zero = floats.args[0], floats.args[2]
        if not all(size_one(to, factor) for factor in floats.args[1:]):
            return None
    else:
        floats = None
    pad = to.made(image)
    if pad is None or pad.name != "nn.pad" or not _holds(pad, zero, to):
        return None
    padding = _padding(made, pad)
    if padding is None:
        return None
    middle = pad.args[0]
    if floats is not None:
        middle = to.again(floats, [middle, *floats.args[1:]])
    return to.again(made, [middle, *others], padding=padding)


def _holds(pad: Made, zero: Expr | None, to: Editor) -> bool:
    """Whether it pads by a number that is the level of zero; of floats by 0."""
    value = _value(pad, to)
    if value is None or str(pad.raw["pad_mode"]) != "constant":
        return False
    if zero is None:
        return value == 0
    level = to.array(zero)
    return level is not None and bool((level == value).all())


def _value(pad: Made, to: Editor) -> Attr:
    """Relax has it as an attribute."""
    if "pad_value" in pad.attrs:
        return pad.attrs["pad_value"]
    value = to.array(pad.args[1])
    return None if value is None or value.size != 1 else value.reshape(())[()]


def _padding(conv: Made, pad: Made) -> tuple[int, ...] | None:
    """That of both; None where batches or channels are padded."""
    layout = str(conv.raw["data_layout"])
    around = dict(zip(layout, pad.attrs["pad_width"], strict=True))
    if sorted(layout) != sorted("NCHW") or min(map(min, around.values())) < 0:
        return None
    if any((*around["N"], *around["C"])):
        return None
    sides = (around["H"][0], around["W"][0], around["H"][1], around["W"][1])
    return tuple(a + b for a, b in zip(quad(conv.raw["padding"]), sides, strict=True))
