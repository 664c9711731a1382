"""Relay: a depthwise weight of several outputs for each channel as one input for each output.

    conv2d(x, weight[channels, multiplier])  ->  conv2d(x, weight[channels * multiplier, 1])

TVM calls it OIHW, or HWOI, and takes it for what these letters do not say.
"""

from __future__ import annotations

from ...ir.rewriting import Editor, Made
from ...tvm.types import Expr

# The layout -> the one of an input for each output, and where its channels are. TOPI would take
# HWOI for one with a multiplier again.
_APART = {"OIHW": ("OIHW", 0), "HWOI": ("HWIO", 2)}


def outputs_apart(made: Made, to: Editor) -> Expr | None:
    """A convolution whose weight is written so."""
    if made.name != "nn.conv2d":
        return None
    weight, layout = one_input_each(made.args[1], made, to)
    return to.again(made, [made.args[0], weight], kernel_layout=layout) if layout else None


def one_input_each(weight: Expr, conv: Made, to: Editor) -> tuple[Expr, str]:
    """The weight of a convolution and its new layout; itself and none without a multiplier."""
    layout, shape = str(conv.raw["kernel_layout"]), to.shape(weight) or []
    if layout not in _APART or None in shape:
        return weight, ""
    new, at = _APART[layout]
    channels, multiplier = (shape[layout.index(letter)] for letter in "OI")
    if multiplier == 1 or channels != int(conv.raw["groups"]) or channels == 1:
        return weight, ""
    ends = (channels * multiplier, 1) if new == layout else (1, channels * multiplier)
    apart = (*shape[:at], *ends, *shape[at + 2 :])
    array = to.array(weight)
    known = None if array is None else to.constant(array.reshape(apart))
    return known or to.emit("reshape", weight, shape=apart), new
