"""depthwise + pointwise convolution, each with bias, batch norm and activation: MobileNetV1's
block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.kernel import Kernel
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import either, op
from ...tvm.types import Attr
from ..kernels.separable import compute, pack
from ..kernels.separable.plan import plan
from ..kernels.separable.schedule import schedule
from ..kernels.separable.staged import widens
from .convolution import activated, biased, direct_layout
from .sizes import check_steps

if TYPE_CHECKING:
    from ...language.nodes import Node


def more_than_one(groups: int) -> bool:
    """In a pattern: a convolution of one group is another op than a depthwise one."""
    return groups > 1


def check_depthwise(match: Match, index: int) -> None:
    """Each channel by itself."""
    conv = match.of("conv2d")[index]
    channels, groups = conv.inputs[0].shape[1], conv.attrs["groups"]
    require(groups == channels, f"{conv.name} must be depthwise: {channels} groups, found {groups}")


def check_pointwise(match: Match, index: int) -> None:
    """A window of one pixel."""
    conv = match.of("conv2d")[index]
    size = tuple(conv.inputs[1].shape[2:])
    require(
        size == (1, 1), f"{conv.name} must be pointwise: a 1x1 window, found {size[0]}x{size[1]}"
    )


def normed(y: Node, bias: Node, *norm: Node) -> Node:
    """An optional bias and batch norm after a convolution."""
    y = biased(y, bias)
    return either(op.batch_norm(y, *norm)[0], y)


def _pair(
    x: Node,
    w_depth: Node, b_depth: Node, gamma_depth: Node, beta_depth: Node,
    mean_depth: Node, var_depth: Node,
    w_point: Node, b_point: Node, gamma_point: Node, beta_point: Node,
    mean_point: Node, var_point: Node,
) -> Node:  # fmt: skip
    depth = (b_depth, gamma_depth, beta_depth, mean_depth, var_depth)
    point = (b_point, gamma_point, beta_point, mean_point, var_point)
    hidden = activated(normed(op.conv2d(x, w_depth, groups=more_than_one), *depth))
    return activated(normed(op.conv2d(hidden, w_point), *point))


def _check_pair(match: Match) -> None:
    direct_layout(match)
    check_steps(match)
    check_depthwise(match, 0)
    check_pointwise(match, 1)


def _mobilenet(groups: int, last: Callable[[Node], Node] = op.relu, **attrs: Attr) -> Program:
    def program(x: Node, w_depth: Node, b_depth: Node, w_point: Node, b_point: Node) -> Node:
        hidden = op.clip(op.bias_add(op.conv2d(x, w_depth, groups=groups, **attrs), b_depth))
        return last(op.bias_add(op.conv2d(hidden, w_point), b_point))

    return program


def _unbiased(first: Callable[[Node], Node], last: Callable[[Node], Node]) -> Program:
    def program(x: Node, w_depth: Node, w_point: Node) -> Node:
        return last(op.conv2d(first(op.conv2d(x, w_depth, groups=7, padding=1)), w_point))

    return program


def _normed_pair(
    x: Node,
    w_depth: Node, gamma_depth: Node, beta_depth: Node, mean_depth: Node, var_depth: Node,
    w_point: Node, gamma_point: Node, beta_point: Node, mean_point: Node, var_point: Node,
) -> Node:  # fmt: skip
    """Convolutions each with a batch norm, as in a model whose norms were not folded."""
    y = op.conv2d(x, w_depth, groups=20, padding=1)
    y = op.relu(op.batch_norm(y, gamma_depth, beta_depth, mean_depth, var_depth)[0])
    y = op.conv2d(y, w_point)
    return op.relu(op.batch_norm(y, gamma_point, beta_point, mean_point, var_point)[0])


def norm_sizes(**channels: int) -> dict[str, Any]:
    """Shapes of batch norms' arguments; `depth=20` for those that end in `_depth`."""
    parts = ("gamma", "beta", "mean", "var")
    return {f"{part}_{name}": (size,) for name, size in channels.items() for part in parts}


_UNBIASED: dict[str, Any] = {
    "x": (2, 7, 9, 11),
    "w_depth": (7, 1, 3, 3),
    "w_point": (10, 7, 1, 1),
}
_PAIR = ("w_depth", "b_depth", "w_point", "b_point")

depthwise_pointwise = Composite(
    "depthwise_pointwise",
    _pair,
    check=_check_pair,
    kernel=Kernel(
        plan,
        compute.depthwise_pointwise,
        schedule,
        {"w_depth": pack.pack_blocks, "w_point": pack.pack_projection},
        widens=widens,
    ),
    epilogue=True,
    why="the depthwise result is read from cache by the pointwise convolution",
    cases=(
        Case(
            _mobilenet(64, padding=1),
            name="mobilenet",
            x=(1, 64, 56, 56),
            w_depth=(64, 1, 3, 3),
            b_depth=(64,),
            w_point=(128, 64, 1, 1),
            b_point=(128,),
            constants=_PAIR,
        ),
        Case(
            _mobilenet(32, padding=1, strides=2),
            name="stride-2",
            x=(2, 32, 37, 29),
            w_depth=(32, 1, 3, 3),
            b_depth=(32,),
            w_point=(40, 32, 1, 1),
            b_point=(40,),
            constants=_PAIR,
        ),
        Case(
            lambda x, w_depth, w_point: op.conv2d(
                op.relu(op.conv2d(x, w_depth, groups=5, padding=(0, 2, 1, 1))), w_point
            ),
            name="no-bias",
            x=(1, 5, 11, 9),
            w_depth=(5, 1, 3, 3),
            w_point=(3, 5, 1, 1),
        ),
        Case(
            _mobilenet(9, lambda y: y, padding=2, dilation=2),
            name="dilated",
            x=(1, 9, 14, 13),
            w_depth=(18, 1, 3, 3),
            b_depth=(18,),
            w_point=(17, 18, 1, 1),
            b_point=(17,),
            constants=_PAIR,
        ),
        Case(
            _normed_pair,
            name="batch-norm",
            x=(1, 20, 33, 13),
            w_depth=(20, 1, 3, 3),
            w_point=(24, 20, 1, 1),
            **norm_sizes(depth=20, point=24),
            constants=("w_depth", "w_point"),
        ),
        Case(_unbiased(op.silu, op.clip), name="silu-clip", **_UNBIASED),
        Case(_unbiased(lambda y: y, op.silu), name="plain-silu", **_UNBIASED),
        Case(_unbiased(op.hard_swish, op.hard_swish), name="hard-swish", **_UNBIASED),
        Case(
            lambda x, w_depth, w_point: op.conv2d(
                op.relu(op.conv2d(x, w_depth, groups=37, padding=1)), op.half_weight(w_point)
            ),
            name="bfloat16",
            generations=("relax",),
            x=(1, 37, 14, 13),
            w_depth=(37, 1, 3, 3),
            w_point=((33, 37, 1, 1), "bfloat16"),
            constants=("w_depth", "w_point"),
        ),
    ),
)
