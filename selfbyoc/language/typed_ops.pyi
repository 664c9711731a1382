"""The vocabulary for type checkers and editors: `python -m selfbyoc ops --stub`."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from .nodes import Many, Node

_T = TypeVar("_T")
_In: TypeAlias = Node | float
_Is: TypeAlias = _T | Callable[[Any], object]  # in a pattern a predicate, too

class Ops:
    def abs(
        self,
        x: _In,
        /,
    ) -> Node:
        """|x|.

        Relay: abs
        Relax: abs
        """

    def add(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x + y, broadcast as in NumPy.

        Relay: add
        Relax: add
        """

    def avg_pool2d(
        self,
        x: _In,
        /,
        *,
        pool_size: _Is[int | tuple[int, int]] = (2, 2),
        strides: _Is[int | tuple[int, int]] = (1, 1),
        padding: _Is[int | tuple[int, ...]] = (0, 0, 0, 0),
        dilation: _Is[int | tuple[int, int]] = (1, 1),
        ceil_mode: _Is[bool] = False,
        layout: _Is[str] = "NCHW",
        count_include_pad: _Is[bool] = False,
    ) -> Node:
        """The mean of images under each window.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          pool_size ((2, 2)): rows and columns of the window
          strides ((1, 1)): steps of the window, (vertical, horizontal)
          padding ((0, 0, 0, 0)): (top, left, bottom, right); (vertical, horizontal); or one
              number for all
          dilation ((1, 1)): distance of the elements under the window, (vertical, horizontal)
          ceil_mode (False): whether a last window that is not whole counts
          layout ('NCHW'): the order of the image's axes: N images, C channels, H rows, W
              columns
          count_include_pad (False): whether the padding counts in the mean

        Relay: nn.avg_pool2d
        Relax: nn.avg_pool2d
        """

    def batch_matmul(
        self,
        x: _In,
        y: _In,
        /,
        *,
        transpose_a: _Is[bool] = False,
        transpose_b: _Is[bool] = False,
        out_dtype: _Is[str | None] = None,
        may_round_to: _Is[str] = ...,
    ) -> Node:
        """x @ y of the last two axes; the axes before them are broadcast. Where transpose_b is
        set, y is [..., n, k].

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          transpose_a (False): whether the last two axes of the first input are swapped
          transpose_b (False): whether the last two axes of the second input are swapped
          out_dtype (None): the result's; None: the input's
          may_round_to (no default): the dtype that both sides may be rounded to, 'bfloat16'; as
              read from a model, for patterns only

        Relay: nn.batch_matmul
        Relax: matmul, with permute_dims where an input is transposed
        """

    def batch_norm(
        self,
        x: _In,
        gamma: _In,
        beta: _In,
        mean: _In,
        variance: _In,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = 1,
        epsilon: _Is[float] = 1e-05,
    ) -> Node:
        """(x - mean) / sqrt(variance + epsilon) * gamma + beta, with vectors along the axis, as in
        inference. Three results: this one is `op.batch_norm(...)[0]`, mean and variance follow.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (1): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all
          epsilon (1e-05): added under the root

        Relay: nn.batch_norm
        Relax: nn.batch_norm
        """

    def bias_add(
        self,
        x: _In,
        bias: _In,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = 1,
    ) -> Node:
        """x + bias, with the vector `bias` along one axis of x.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (1): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all

        Relay: nn.bias_add
        Relax: add(x, bias), reshaped where the axis is not the last
        """

    def broadcast_to(
        self,
        x: _In,
        /,
        *,
        shape: _Is[tuple[int, ...]] = ...,
    ) -> Node:
        """x repeated along axes of one element and along new first axes, as NumPy's.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          shape (no default): the result's

        Relay: broadcast_to
        Relax: broadcast_to
        """

    def cast(
        self,
        x: _In,
        /,
        *,
        dtype: _Is[str] = ...,
    ) -> Node:
        """x in another dtype; to an integer, the fraction is cut off.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          dtype (no default): the result's

        Relay: cast
        Relax: astype
        """

    def clip(
        self,
        x: _In,
        /,
        *,
        a_min: _Is[float] = 0.0,
        a_max: _Is[float] = 6.0,
    ) -> Node:
        """min(max(x, a_min), a_max).

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          a_min (0.0): the lower limit
          a_max (6.0): the upper limit

        Relay: clip
        Relax: clip, nn.relu6
        """

    def concatenate(
        self,
        tensors: Sequence[_In] | Many,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = 1,
    ) -> Node:
        """A list of tensors, or `many(branch)`, one after the other along an axis.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (1): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all

        Relay: concatenate
        Relax: concat
        """

    def conv1d_transpose(
        self,
        x: _In,
        weight: _In,
        /,
        *,
        strides: _Is[int | tuple[int, int]] = (1, 1),
        padding: _Is[int | tuple[int, ...]] = (0, 0, 0, 0),
        output_padding: _Is[int | tuple[int, int]] = (0, 0),
        dilation: _Is[int | tuple[int, int]] = (1, 1),
        groups: _Is[int] = 1,
        out_dtype: _Is[str | None] = None,
        data_layout: _Is[str] = "NCW",
        kernel_layout: _Is[str] = "IOW",
        out_layout: _Is[str] = ...,
    ) -> Node:
        """Each element of x [N, I, W] times weight [I, O / groups, W], added to the result [N, O,
        W] at strides. Attributes are those of two axes, of which the first says nothing:
        strides=(1, 2), padding=(0, 1, 0, 1).

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          strides ((1, 1)): steps of the window, (vertical, horizontal)
          padding ((0, 0, 0, 0)): (top, left, bottom, right); (vertical, horizontal); or one
              number for all
          output_padding ((0, 0)): rows and columns added to the result, below and on the right
          dilation ((1, 1)): distance of the elements under the window, (vertical, horizontal)
          groups (1): groups of channels, each convolved by itself
          out_dtype (None): the result's; None: the input's
          data_layout ('NCW'): the order of the image's axes: N images, C channels, H rows, W
              columns
          kernel_layout ('IOW'): the order of the weight's axes: O output channels, I input
              channels, H rows, W columns
          out_layout (no default): the order of the result's axes; that of data_layout if not
              given

        Relay: nn.conv1d_transpose
        Relax: nn.conv1d_transpose
        """

    def conv2d(
        self,
        x: _In,
        weight: _In,
        /,
        *,
        strides: _Is[int | tuple[int, int]] = (1, 1),
        padding: _Is[int | tuple[int, ...]] = (0, 0, 0, 0),
        dilation: _Is[int | tuple[int, int]] = (1, 1),
        groups: _Is[int] = 1,
        data_layout: _Is[str] = "NCHW",
        kernel_layout: _Is[str] = "OIHW",
        out_dtype: _Is[str | None] = None,
        out_layout: _Is[str] = ...,
        pad_value: _Is[int] = ...,
    ) -> Node:
        """The sum of x * weight over input channels and window, at each place of the window: x is
        [N, C, H, W], weight [O, C / groups, H, W], the result [N, O, H, W], in the layouts
        below.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          strides ((1, 1)): steps of the window, (vertical, horizontal)
          padding ((0, 0, 0, 0)): (top, left, bottom, right); (vertical, horizontal); or one
              number for all
          dilation ((1, 1)): distance of the elements under the window, (vertical, horizontal)
          groups (1): groups of channels, each convolved by itself
          data_layout ('NCHW'): the order of the image's axes: N images, C channels, H rows, W
              columns
          kernel_layout ('OIHW'): the order of the weight's axes: O output channels, I input
              channels, H rows, W columns
          out_dtype (None): the result's; None: the input's
          out_layout (no default): the order of the result's axes; that of data_layout if not
              given
          pad_value (no default): what the padding of bytes holds; as read from a model, for
              patterns only

        Relay: nn.conv2d
        Relax: nn.conv2d
        """

    def conv2d_transpose(
        self,
        x: _In,
        weight: _In,
        /,
        *,
        strides: _Is[int | tuple[int, int]] = (1, 1),
        padding: _Is[int | tuple[int, ...]] = (0, 0, 0, 0),
        output_padding: _Is[int | tuple[int, int]] = (0, 0),
        dilation: _Is[int | tuple[int, int]] = (1, 1),
        groups: _Is[int] = 1,
        out_dtype: _Is[str | None] = None,
        data_layout: _Is[str] = "NCHW",
        kernel_layout: _Is[str] = "IOHW",
        out_layout: _Is[str] = ...,
    ) -> Node:
        """Each element of x [N, I, H, W] times weight [I, O / groups, H, W], added to the result
        [N, O, H, W] at strides: the gradient of conv2d.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          strides ((1, 1)): steps of the window, (vertical, horizontal)
          padding ((0, 0, 0, 0)): (top, left, bottom, right); (vertical, horizontal); or one
              number for all
          output_padding ((0, 0)): rows and columns added to the result, below and on the right
          dilation ((1, 1)): distance of the elements under the window, (vertical, horizontal)
          groups (1): groups of channels, each convolved by itself
          out_dtype (None): the result's; None: the input's
          data_layout ('NCHW'): the order of the image's axes: N images, C channels, H rows, W
              columns
          kernel_layout ('IOHW'): the order of the weight's axes: O output channels, I input
              channels, H rows, W columns
          out_layout (no default): the order of the result's axes; that of data_layout if not
              given

        Relay: nn.conv2d_transpose
        Relax: nn.conv2d_transpose
        """

    def dense(
        self,
        x: _In,
        weight: _In,
        /,
        *,
        out_dtype: _Is[str | None] = None,
    ) -> Node:
        """x @ weight.T: x is [..., k], weight [units, k], the result [..., units].

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          out_dtype (None): the result's; None: the input's

        Relay: nn.dense
        Relax: matmul(x, permute_dims(weight))
        """

    def dequantize(
        self,
        x: _In,
        scale: _In,
        zero_point: _In,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = -1,
        out_dtype: _Is[str | None] = "float32",
    ) -> Node:
        """(x - zero_point) * scale; both are one number, or a vector along one axis of x.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (-1): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all
          out_dtype ('float32'): the result's; None: the input's

        Relay: qnn.dequantize
        Relax: dequantize
        """

    def dequantize_groups(
        self,
        levels: _In,
        scale: _In,
        zero_point: _In,
        /,
        *,
        bits: _Is[int] = 4,
        group: _Is[int] = 32,
    ) -> Node:
        """(levels - zero_point) * scale of a weight [units, depth], float32. levels are uint8, of
        which the lowest bits count; scale, floats, and zero_point, floats or uint8, are [units,
        depth / group]: one for each group along the depth, of which the last may be short. A
        zero_point [1, 1] is that of all groups.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          bits (4): of a level: 2, 4 or 8
          group (32): levels along the depth that have one scale and zero point

        Relay: selfbyoc.dequantize_groups
        Relax: selfbyoc.dequantize_groups
        """

    def divide(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x / y; of integers rounded towards zero, broadcast as in NumPy.

        Relay: divide
        Relax: divide
        """

    def embedding(
        self,
        table: _In,
        ids: _In,
        /,
    ) -> Node:
        """The row table[id] for each of `ids`, of a table [units, depth] that a product multiplies
        by, too, or that has few bits. An id out of range is the nearest one.

        Relay: selfbyoc.embedding
        Relax: selfbyoc.embedding
        """

    def equal(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x == y, a condition, broadcast as in NumPy.

        Relay: equal
        Relax: equal
        """

    def erf(
        self,
        x: _In,
        /,
    ) -> Node:
        """The error function, 2 / sqrt(pi) * integral of e ** (-t ** 2) from 0 to x.

        Relay: erf
        Relax: erf
        """

    def exp(
        self,
        x: _In,
        /,
    ) -> Node:
        """e ** x.

        Relay: exp
        Relax: exp
        """

    def fake_quantize_groups(
        self,
        x: _In,
        /,
        *,
        group: _Is[int] = 32,
    ) -> Node:
        """x, rounded to levels of 8 bits in groups of its last axis: a group's largest number is
        level 127, or -127, others are its nearest multiple of a 127th, halves to even. What
        weights of few bits are multiplied by where a model allows it (`accuracy_level` 4 of
        MatMulNBits).

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          group (32): levels along the depth that have one scale and zero point

        Relay: selfbyoc.fake_quantize_groups
        Relax: selfbyoc.fake_quantize_groups
        """

    def fixed_point_multiply(
        self,
        x: _In,
        /,
        *,
        multiplier: _Is[int] = ...,
        shift: _Is[int] = ...,
    ) -> Node:
        """round(x * multiplier / 2 ** (31 - shift)), halves up, in 64 bits (of a power of two, a
        multiplier of 1 << 30, in x's own); bit for bit as Relay's.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          multiplier (no default): of 31 bits
          shift (no default): by how many bits a factor is larger than multiplier / 2 ** 31

        Relay: fixed_point_multiply
        Relax: none
        """

    def gelu(
        self,
        x: _In,
        /,
    ) -> Node:
        """x * (1 + erf(x / sqrt(2))) / 2.

        Relay: x * 0.5 * (erf(x / sqrt(2)) + 1)
        Relax: nn.gelu
        """

    def gelu_tanh(
        self,
        x: _In,
        /,
    ) -> Node:
        """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) / 2.

        Relay: x * 0.5 * (tanh((x + 0.044715 * x ** 3) * sqrt(2 / pi)) + 1)
        Relax: nn.gelu_tanh
        """

    def global_avg_pool2d(
        self,
        x: _In,
        /,
        *,
        layout: _Is[str] = "NCHW",
    ) -> Node:
        """The mean of each channel of images; height and width stay, with one element.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          layout ('NCHW'): the order of the image's axes: N images, C channels, H rows, W
              columns

        Relay: nn.global_avg_pool2d
        Relax: nn.adaptive_avg_pool2d with output_size=(1, 1)
        """

    def greater(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x > y, a condition, broadcast as in NumPy.

        Relay: greater
        Relax: greater
        """

    def greater_equal(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x >= y, a condition, broadcast as in NumPy.

        Relay: greater_equal
        Relax: greater_equal
        """

    def gru(
        self,
        gates: _In,
        weight: _In,
        hidden: _In,
        bias: _In,
        /,
        *,
        activations: _Is[str] = "sigmoid tanh",
        direction: _Is[str] = "forward",
        clip: _Is[float] = 0.0,
        linear_before_reset: _Is[bool] = False,
    ) -> Node:
        """The states of all steps of a GRU, as of an LSTM, of gates update, reset and candidate;
        bias [directions, units] is added to the candidate's product with the state.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          activations ('sigmoid tanh'): of each direction's gates, candidate and state, as
              'sigmoid tanh tanh'; alpha and beta after a colon each, 'leaky_relu:0.1'
          direction ('forward'): 'forward', 'reverse' (from the last step) or 'bidirectional'
          clip (0.0): the limit of what goes into activations, on both sides; 0: none
          linear_before_reset (False): whether the reset gate multiplies the state's product,
              not the state

        Relay: selfbyoc.gru
        Relax: selfbyoc.gru
        """

    def half_factor(
        self,
        x: _In,
        /,
    ) -> Node:
        """x itself, the right side of a batch_matmul that a model has in bfloat16: both sides may
        be rounded to it, or not.

        Relay: selfbyoc.half_factor
        Relax: selfbyoc.half_factor
        """

    def half_weight(
        self,
        weight: _In,
        /,
    ) -> Node:
        """A constant weight of float16 or bfloat16 as float32, in a product that a model has in
        that dtype: what it is multiplied by may be rounded to it, or not.

        Relay: selfbyoc.half_weight
        Relax: selfbyoc.half_weight
        """

    def hard_swish(
        self,
        x: _In,
        /,
    ) -> Node:
        """x * min(max(x + 3, 0), 6) / 6.

        Relay: x * clip(x + 3, 0, 6) / 6
        Relax: x * clip(x + 3, 0, 6) / 6
        """

    def layer_norm(
        self,
        x: _In,
        gamma: _In,
        beta: _In,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = -1,
        epsilon: _Is[float] = 1e-05,
    ) -> Node:
        """(x - mean(x)) / sqrt(variance(x) + epsilon) * gamma + beta, mean and variance along the
        axis.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (-1): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all
          epsilon (1e-05): added under the root

        Relay: nn.layer_norm
        Relax: nn.layer_norm
        """

    def leaky_relu(
        self,
        x: _In,
        /,
        *,
        alpha: _Is[float] = 0.01,
    ) -> Node:
        """x where x > 0, else alpha * x.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          alpha (0.01): a factor, as in the formula

        Relay: nn.leaky_relu
        Relax: nn.leakyrelu
        """

    def left_shift(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x << y, of integers, broadcast as in NumPy.

        Relay: left_shift
        Relax: left_shift
        """

    def less(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x < y, a condition, broadcast as in NumPy.

        Relay: less
        Relax: less
        """

    def less_equal(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x <= y, a condition, broadcast as in NumPy.

        Relay: less_equal
        Relax: less_equal
        """

    def log(
        self,
        x: _In,
        /,
    ) -> Node:
        """The natural logarithm of x.

        Relay: log
        Relax: log
        """

    def lrn(
        self,
        x: _In,
        /,
        *,
        size: _Is[int | tuple[int, int]] = 5,
        axis: _Is[int | tuple[int, ...] | None] = 1,
        bias: _Is[float] = 2.0,
        alpha: _Is[float] = 1e-05,
        beta: _Is[float] = 0.75,
    ) -> Node:
        """x / (bias + alpha / size * s) ** beta, where s is the sum of x ** 2 over `size`
        neighbours along the axis.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          size (5): of lrn the channels under the window, odd; of resize2d the result's rows and
              columns
          axis (1): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all
          bias (2.0): a term, as in the formula
          alpha (1e-05): a factor, as in the formula
          beta (0.75): an exponent, as in the formula

        Relay: nn.lrn
        Relax: the ops that importers write it as, a pool of squares; read only
        """

    def lstm(
        self,
        gates: _In,
        weight: _In,
        hidden: _In,
        cell: _In,
        /,
        *,
        activations: _Is[str] = "sigmoid tanh tanh",
        direction: _Is[str] = "forward",
        clip: _Is[float] = 0.0,
        input_forget: _Is[bool] = False,
        quantized_state: _Is[bool] = False,
    ) -> Node:
        """The states of all steps of an LSTM, [length, directions, batch, units], and its cell
        states. gates is [length, batch, directions * 4 * units], the products of all inputs:
        input, output, forget and candidate of one direction after those of the other; weight
        [directions, 4 * units, units]; hidden and cell [directions, batch, units], before the
        first step. quantized_state is ONNX Runtime's DynamicQuantizeLSTM: what goes into a
        step's product is the state of the whole batch as 8 bits give it back.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          activations ('sigmoid tanh tanh'): of each direction's gates, candidate and state, as
              'sigmoid tanh tanh'; alpha and beta after a colon each, 'leaky_relu:0.1'
          direction ('forward'): 'forward', 'reverse' (from the last step) or 'bidirectional'
          clip (0.0): the limit of what goes into activations, on both sides; 0: none
          input_forget (False): whether the forget gate is one less the input gate
          quantized_state (False): whether a step's product is of the state rounded to 8 bits

        Relay: selfbyoc.lstm
        Relax: selfbyoc.lstm
        """

    def max(
        self,
        x: _In,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = None,
        keepdims: _Is[bool] = False,
    ) -> Node:
        """The largest element along axes.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (None): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all
          keepdims (False): whether the reduced axes stay, with one element

        Relay: max
        Relax: max
        """

    def max_pool2d(
        self,
        x: _In,
        /,
        *,
        pool_size: _Is[int | tuple[int, int]] = (2, 2),
        strides: _Is[int | tuple[int, int]] = (1, 1),
        padding: _Is[int | tuple[int, ...]] = (0, 0, 0, 0),
        dilation: _Is[int | tuple[int, int]] = (1, 1),
        ceil_mode: _Is[bool] = False,
        layout: _Is[str] = "NCHW",
    ) -> Node:
        """The largest element of images under each window; padding never wins.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          pool_size ((2, 2)): rows and columns of the window
          strides ((1, 1)): steps of the window, (vertical, horizontal)
          padding ((0, 0, 0, 0)): (top, left, bottom, right); (vertical, horizontal); or one
              number for all
          dilation ((1, 1)): distance of the elements under the window, (vertical, horizontal)
          ceil_mode (False): whether a last window that is not whole counts
          layout ('NCHW'): the order of the image's axes: N images, C channels, H rows, W
              columns

        Relay: nn.max_pool2d
        Relax: nn.max_pool2d
        """

    def maximum(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """The larger of x and y, broadcast as in NumPy.

        Relay: maximum
        Relax: maximum
        """

    def mean(
        self,
        x: _In,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = None,
        keepdims: _Is[bool] = False,
    ) -> Node:
        """The mean along axes.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (None): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all
          keepdims (False): whether the reduced axes stay, with one element

        Relay: mean
        Relax: mean
        """

    def minimum(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """The smaller of x and y, broadcast as in NumPy.

        Relay: minimum
        Relax: minimum
        """

    def multiply(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x * y, broadcast as in NumPy.

        Relay: multiply
        Relax: multiply
        """

    def negative(
        self,
        x: _In,
        /,
    ) -> Node:
        """-x.

        Relay: negative
        Relax: negative
        """

    def not_equal(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x != y, a condition, broadcast as in NumPy.

        Relay: not_equal
        Relax: not_equal
        """

    def peephole_lstm(
        self,
        gates: _In,
        weight: _In,
        hidden: _In,
        cell: _In,
        peepholes: _In,
        /,
        *,
        activations: _Is[str] = "sigmoid tanh tanh",
        direction: _Is[str] = "forward",
        clip: _Is[float] = 0.0,
        input_forget: _Is[bool] = False,
        quantized_state: _Is[bool] = False,
    ) -> Node:
        """An LSTM whose gates see the cell state, by peepholes [directions, 3 * units].

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          activations ('sigmoid tanh tanh'): of each direction's gates, candidate and state, as
              'sigmoid tanh tanh'; alpha and beta after a colon each, 'leaky_relu:0.1'
          direction ('forward'): 'forward', 'reverse' (from the last step) or 'bidirectional'
          clip (0.0): the limit of what goes into activations, on both sides; 0: none
          input_forget (False): whether the forget gate is one less the input gate
          quantized_state (False): whether a step's product is of the state rounded to 8 bits

        Relay: selfbyoc.peephole_lstm
        Relax: selfbyoc.peephole_lstm
        """

    def power(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x ** y, broadcast as in NumPy.

        Relay: power
        Relax: power
        """

    def quantize(
        self,
        x: _In,
        scale: _In,
        zero_point: _In,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = -1,
        out_dtype: _Is[str | None] = "int8",
        ties: _Is[str] = ...,
    ) -> Node:
        """round(x / scale) + zero_point, limited to the range of out_dtype; both are one number,
        or a vector along one axis of x. Halves go to even on Relax, away from zero on Relay.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (-1): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all
          out_dtype ('int8'): the result's; None: the input's
          ties (no default): how halves are rounded, 'even' on Relax and 'away' on Relay; as
              read from a model, for patterns only

        Relay: qnn.quantize
        Relax: quantize
        """

    def relu(
        self,
        x: _In,
        /,
    ) -> Node:
        """max(x, 0).

        Relay: nn.relu
        Relax: nn.relu
        """

    def requantize(
        self,
        x: _In,
        /,
        *,
        rounding: _Is[str] = "UPWARD",
        out_dtype: _Is[str | None] = ...,
        input_scale: _Is[float] = ...,
        input_zero_point: _Is[int] = ...,
        output_scale: _Is[float] = ...,
        output_zero_point: _Is[int] = ...,
    ) -> Node:
        """round((x - input_zero_point) * input_scale / output_scale) + output_zero_point, limited
        to the range of out_dtype, in fixed point of 64 bits; bit for bit as Relay's.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          rounding ('UPWARD'): how halves are rounded: 'UPWARD', or away from zero, 'TONEAREST'
          out_dtype (no default): the result's; None: the input's
          input_scale (no default): of the input: value = scale * (integer - zero point)
          input_zero_point (no default): of the input
          output_scale (no default): of the result: value = scale * (integer - zero point)
          output_zero_point (no default): of the result

        Relay: qnn.requantize
        Relax: none
        """

    def requantize_by_channel(
        self,
        x: _In,
        multiplier: _In,
        shift: _In,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = -1,
        out_dtype: _Is[str | None] = "int8",
        rounding: _Is[str] = "UPWARD",
        input_zero_point: _Is[int] = 0,
        output_zero_point: _Is[int] = 0,
        least_shift: _Is[int] = 1,
    ) -> Node:
        """round((x - input_zero_point) * multiplier / 2 ** shift) + output_zero_point, limited to
        the range of out_dtype, in 64 bits; multiplier and shift (least_shift to 62) are vectors
        of int32 along one axis of x.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (-1): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all
          out_dtype ('int8'): the result's; None: the input's
          rounding ('UPWARD'): how halves are rounded: 'UPWARD', or away from zero, 'TONEAREST'
          input_zero_point (0): of the input
          output_zero_point (0): of the result
          least_shift (1): what no shift is below: of 33 or more 32 bits are enough

        Relay: selfbyoc.requantize_by_channel
        Relax: selfbyoc.requantize_by_channel
        """

    def reshape(
        self,
        x: _In,
        /,
        *,
        shape: _Is[tuple[int, ...]] = ...,
    ) -> Node:
        """The elements of x in their order, in another shape.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          shape (no default): the result's

        Relay: reshape, expand_dims, squeeze, nn.batch_flatten
        Relax: reshape, expand_dims, squeeze, flatten, nn.batch_flatten
        """

    def resize2d(
        self,
        x: _In,
        /,
        *,
        layout: _Is[str] = "NCHW",
        method: _Is[str] = "linear",
        coordinate_transformation_mode: _Is[str] = "half_pixel",
        rounding_method: _Is[str] = "",
        size: _Is[int | tuple[int, int]] = ...,
    ) -> Node:
        """Images with other numbers of rows and columns: between the nearest two of each (method
        'linear'), or the nearest one ('nearest_neighbor').

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          layout ('NCHW'): the order of the image's axes: N images, C channels, H rows, W
              columns
          method ('linear'): 'linear' or 'nearest_neighbor'
          coordinate_transformation_mode ('half_pixel'): where a pixel of the result lies in the
              image: 'half_pixel', 'align_corners', 'asymmetric', 'pytorch_half_pixel' or
              'tf_half_pixel_for_nn', as in ONNX
          rounding_method (''): what is nearest: 'round', 'round_prefer_floor',
              'round_prefer_ceil', 'floor' or 'ceil'; '': 'round' of aligned corners, else
              'floor'
          size (no default): of lrn the channels under the window, odd; of resize2d the result's
              rows and columns

        Relay: image.resize2d
        Relax: image.resize2d
        """

    def right_shift(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x >> y, of integers, with the sign, broadcast as in NumPy.

        Relay: right_shift
        Relax: right_shift
        """

    def rms_norm(
        self,
        x: _In,
        gamma: _In,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = -1,
        epsilon: _Is[float] = 1e-05,
    ) -> Node:
        """x / sqrt(mean(x ** 2) + epsilon) * gamma, the mean along the axis.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (-1): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all
          epsilon (1e-05): added under the root

        Relay: multiply(multiply(x, rsqrt(add(mean(multiply(x, x)), epsilon))), gamma)
        Relax: nn.rms_norm
        """

    def rnn(
        self,
        gates: _In,
        weight: _In,
        hidden: _In,
        /,
        *,
        activations: _Is[str] = "tanh",
        direction: _Is[str] = "forward",
        clip: _Is[float] = 0.0,
    ) -> Node:
        """The states of all steps of a plain recurrent layer, as of an LSTM, with one gate.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          activations ('tanh'): of each direction's gates, candidate and state, as 'sigmoid tanh
              tanh'; alpha and beta after a colon each, 'leaky_relu:0.1'
          direction ('forward'): 'forward', 'reverse' (from the last step) or 'bidirectional'
          clip (0.0): the limit of what goes into activations, on both sides; 0: none

        Relay: selfbyoc.rnn
        Relax: selfbyoc.rnn
        """

    def rotate_half(
        self,
        x: _In,
        /,
    ) -> Node:
        """(a, b) -> (-b, a) of the halves of the last axis: what rotary embedding multiplies by
        sines.

        Relay: selfbyoc.rotate_half
        Relax: selfbyoc.rotate_half
        """

    def round(
        self,
        x: _In,
        /,
        *,
        ties: _Is[str] = ...,
    ) -> Node:
        """The nearest whole number.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          ties (no default): how halves are rounded, 'even' on Relax and 'away' on Relay; as
              read from a model, for patterns only

        Relay: round
        Relax: round
        """

    def rsqrt(
        self,
        x: _In,
        /,
    ) -> Node:
        """1 / sqrt(x).

        Relay: rsqrt
        Relax: rsqrt
        """

    def sigmoid(
        self,
        x: _In,
        /,
    ) -> Node:
        """1 / (1 + e ** -x).

        Relay: sigmoid
        Relax: sigmoid
        """

    def silu(
        self,
        x: _In,
        /,
    ) -> Node:
        """x * sigmoid(x).

        Relay: multiply(x, sigmoid(x))
        Relax: nn.silu
        """

    def softmax(
        self,
        x: _In,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = -1,
        guarded: _Is[bool | str] = ...,
    ) -> Node:
        """e ** x / sum(e ** x), summed along the axis; computed with the largest subtracted.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (-1): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all
          guarded (no default): whether a row of -inf alone gives zeros, not NaN; 'nan': so does
              any of NaN; as read from a model, for patterns only

        Relay: nn.softmax
        Relax: nn.softmax
        """

    def split(
        self,
        x: _In,
        /,
        *,
        indices_or_sections: _Is[int | tuple[int, ...]] = ...,
        axis: _Is[int | tuple[int, ...] | None] = ...,
    ) -> Node:
        """x cut along an axis into several results, taken by index: `op.split(x, ...)[0]`.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          indices_or_sections (no default): how many equal parts, or where each but the first
              begins
          axis (no default): the axis, counted from the end if negative; of a reduction one
              axis, several, or None for all

        Relay: split
        Relax: split
        """

    def sqrt(
        self,
        x: _In,
        /,
    ) -> Node:
        """The square root of x.

        Relay: sqrt
        Relax: sqrt
        """

    def subtract(
        self,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x - y, broadcast as in NumPy.

        Relay: subtract
        Relax: subtract
        """

    def sum(
        self,
        x: _In,
        /,
        *,
        axis: _Is[int | tuple[int, ...] | None] = None,
        keepdims: _Is[bool] = False,
    ) -> Node:
        """The sum along axes.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axis (None): the axis, counted from the end if negative; of a reduction one axis,
              several, or None for all
          keepdims (False): whether the reduced axes stay, with one element

        Relay: sum
        Relax: sum
        """

    def tanh(
        self,
        x: _In,
        /,
    ) -> Node:
        """The hyperbolic tangent of x.

        Relay: tanh
        Relax: tanh
        """

    def tile(
        self,
        x: _In,
        /,
        *,
        repeats: _Is[tuple[int, ...]] = ...,
    ) -> Node:
        """The whole of x so many times along each axis, as NumPy's.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          repeats (no default): how many times along each axis

        Relay: tile
        Relax: tile
        """

    def transpose(
        self,
        x: _In,
        /,
        *,
        axes: _Is[tuple[int, ...]] = ...,
    ) -> Node:
        """x with its axes in another order.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          axes (no default): the input's axes in the order of the result

        Relay: transpose
        Relax: permute_dims
        """

    def tree_ensemble(
        self,
        x: _In,
        splits: _In,
        features: _In,
        ways: _In,
        roots: _In,
        leaf_targets: _In,
        leaf_weights: _In,
        /,
        *,
        compared: _Is[str] = "less_equal",
        summed: _Is[str] = "sum",
        targets: _Is[int] = 1,
    ) -> Node:
        """The sum over decision trees, [rows, targets], of x [rows, features]. Node n compares
        x[row, features[n]] with splits[n] (less_equal, less, greater_equal, greater, equal),
        and ways[n] has the next nodes where that is false, where it holds, and where x is NaN:
        ~m is leaf m. roots has each tree's first node; a leaf gives its weight to its target.
        summed is sum or mean, and with one target min or max.

        Attributes (in a pattern: a value, or a predicate, that the model's must be):
          compared ('less_equal'): how a value is compared with a node's split: less_equal,
              less, greater_equal, greater or equal
          summed ('sum'): what trees give together: their sum or mean, min or max
          targets (1): how many results a row has

        Relay: selfbyoc.tree_ensemble
        Relax: selfbyoc.tree_ensemble
        """

    def where(
        self,
        condition: _In,
        x: _In,
        y: _In,
        /,
    ) -> Node:
        """x where the condition holds, y elsewhere, broadcast as in NumPy.

        Relay: where
        Relax: where
        """
