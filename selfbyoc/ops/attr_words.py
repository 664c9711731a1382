"""The attributes of the vocabulary in words, and their types: one name means one thing."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """An attribute's type in Python's words, and what it says."""

    type: str
    meaning: str


_PAIR, _INTS = "int | tuple[int, int]", "tuple[int, ...]"
_AXES = "int | tuple[int, ...] | None"

ATTRIBUTES: dict[str, Words] = {
    "a_max": Words("float", "the upper limit"),
    "a_min": Words("float", "the lower limit"),
    "activations": Words(
        "str", "of each direction's gates, candidate and state, as 'sigmoid tanh tanh'; alpha and "
               "beta after a colon each, 'leaky_relu:0.1'"),
    "alpha": Words("float", "a factor, as in the formula"),
    "axes": Words(_INTS, "the input's axes in the order of the result"),
    "axis": Words(_AXES, "the axis, counted from the end if negative; of a reduction one axis, "
                         "several, or None for all"),
    "beta": Words("float", "an exponent, as in the formula"),
    "bias": Words("float", "a term, as in the formula"),
    "bits": Words("int", "of a level: 2, 4 or 8"),
    "ceil_mode": Words("bool", "whether a last window that is not whole counts"),
    "compared": Words("str", "how a value is compared with a node's split: less_equal, less, "
                             "greater_equal, greater or equal"),
    "count_include_pad": Words("bool", "whether the padding counts in the mean"),
    "clip": Words("float", "the limit of what goes into activations, on both sides; 0: none"),
    "coordinate_transformation_mode": Words(
        "str", "where a pixel of the result lies in the image: 'half_pixel', 'align_corners', "
               "'asymmetric', 'pytorch_half_pixel' or 'tf_half_pixel_for_nn', as in ONNX"),
    "data_layout": Words("str", "the order of the image's axes: N images, C channels, H rows, "
                                "W columns"),
    "dilation": Words(_PAIR, "distance of the elements under the window, (vertical, horizontal)"),
    "direction": Words("str", "'forward', 'reverse' (from the last step) or 'bidirectional'"),
    "dtype": Words("str", "the result's"),
    "epsilon": Words("float", "added under the root"),
    "groups": Words("int", "groups of channels, each convolved by itself"),
    "guarded": Words("bool | str", "whether a row of -inf alone gives zeros, not NaN; 'nan': so "
                                   "does any of NaN; as read from a model, for patterns only"),
    "group": Words("int", "levels along the depth that have one scale and zero point"),
    "indices_or_sections": Words("int | tuple[int, ...]", "how many equal parts, or where each "
                                                          "but the first begins"),
    "quantized_state": Words("bool", "whether a step's product is of the state rounded to 8 bits"),
    "input_forget": Words("bool", "whether the forget gate is one less the input gate"),
    "input_scale": Words("float", "of the input: value = scale * (integer - zero point)"),
    "input_zero_point": Words("int", "of the input"),
    "keepdims": Words("bool", "whether the reduced axes stay, with one element"),
    "kernel_layout": Words("str", "the order of the weight's axes: O output channels, I input "
                                  "channels, H rows, W columns"),
    "layout": Words("str", "the order of the image's axes: N images, C channels, H rows, "
                           "W columns"),
    "least_shift": Words("int", "what no shift is below: of 33 or more 32 bits are enough"),
    "linear_before_reset": Words(
        "bool", "whether the reset gate multiplies the state's product, not the state"),
    "method": Words("str", "'linear' or 'nearest_neighbor'"),
    "out_dtype": Words("str | None", "the result's; None: the input's"),
    "out_layout": Words("str", "the order of the result's axes; that of data_layout if not given"),
    "output_padding": Words(_PAIR, "rows and columns added to the result, below and on the right"),
    "output_scale": Words("float", "of the result: value = scale * (integer - zero point)"),
    "output_zero_point": Words("int", "of the result"),
    "may_round_to": Words("str", "the dtype that both sides may be rounded to, 'bfloat16'; as read "
                                 "from a model, for patterns only"),
    "multiplier": Words("int", "of 31 bits"),
    "pad_value": Words("int", "what the padding of bytes holds; as read from a model, for patterns "
                              "only"),
    "padding": Words("int | tuple[int, ...]", "(top, left, bottom, right); (vertical, horizontal); "
                                              "or one number for all"),
    "pool_size": Words(_PAIR, "rows and columns of the window"),
    "repeats": Words(_INTS, "how many times along each axis"),
    "rounding": Words("str", "how halves are rounded: 'UPWARD', or away from zero, 'TONEAREST'"),
    "rounding_method": Words("str", "what is nearest: 'round', 'round_prefer_floor', "
                                    "'round_prefer_ceil', 'floor' or 'ceil'; '': 'round' of "
                                    "aligned corners, else 'floor'"),
    "shape": Words(_INTS, "the result's"),
    "shift": Words("int", "by how many bits a factor is larger than multiplier / 2 ** 31"),
    "size": Words(_PAIR, "of lrn the channels under the window, odd; of resize2d the result's rows "
                         "and columns"),
    "strides": Words(_PAIR, "steps of the window, (vertical, horizontal)"),
    "ties": Words("str", "how halves are rounded, 'even' on Relax and 'away' on Relay; as read "
                         "from a model, for patterns only"),
    "summed": Words("str", "what trees give together: their sum or mean, min or max"),
    "targets": Words("int", "how many results a row has"),
    "transpose_a": Words("bool", "whether the last two axes of the first input are swapped"),
    "transpose_b": Words("bool", "whether the last two axes of the second input are swapped"),
}  # fmt: skip
