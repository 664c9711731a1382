"""MobileNet's blocks: depthwise + pointwise convolution, and the inverted residual."""

from __future__ import annotations

from typing import Any

from ..composite import Case, Composite, require
from ..partition.pattern import either, op
from . import direct, direct_schedule
from .convolution import activated, biased, direct_layout


def _depthwise(match: Any, index: int) -> None:
    conv = match.of("conv2d")[index]
    channels, groups = conv.inputs[0].shape[1], conv.attrs["groups"]
    require(groups == channels, f"{conv.name} must be depthwise: {channels} groups, found {groups}")


def _pointwise(match: Any, index: int) -> None:
    conv = match.of("conv2d")[index]
    size = tuple(conv.inputs[1].shape[2:])
    require(
        size == (1, 1), f"{conv.name} must be pointwise: a 1x1 window, found {size[0]}x{size[1]}"
    )


def _pair(x: Any, w_depth: Any, b_depth: Any, w_point: Any, b_point: Any) -> Any:
    hidden = activated(biased(op.conv2d(x, w_depth), b_depth))
    return activated(biased(op.conv2d(hidden, w_point), b_point))


def _check_pair(match: Any) -> None:
    direct_layout(match)
    _depthwise(match, 0)
    _pointwise(match, 1)


def _mobilenet(groups: int, last: Any = op.relu, **attrs: Any) -> Any:
    def program(x: Any, w_depth: Any, b_depth: Any, w_point: Any, b_point: Any) -> Any:
        hidden = op.clip(op.bias_add(op.conv2d(x, w_depth, groups=groups, **attrs), b_depth))
        return last(op.bias_add(op.conv2d(hidden, w_point), b_point))

    return program


def _unbiased(first: Any, last: Any) -> Any:
    def program(x: Any, w_depth: Any, w_point: Any) -> Any:
        return last(op.conv2d(first(op.conv2d(x, w_depth, groups=7, padding=1)), w_point))

    return program


_UNBIASED: dict[str, Any] = {
    "x": (2, 7, 9, 11),
    "w_depth": (7, 1, 3, 3),
    "w_point": (10, 7, 1, 1),
}
_PAIR = ("w_depth", "b_depth", "w_point", "b_point")

depthwise_pointwise = Composite(
    "depthwise_pointwise",
    _pair,
    direct_schedule.CPU,
    check=_check_pair,
    compute={"conv2d": direct.conv2d},
    pack={"w_depth": direct.pack_weight, "w_point": direct.pack_weight},
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
        Case(_unbiased(op.silu, op.clip), name="silu-clip", **_UNBIASED),
        Case(_unbiased(lambda y: y, op.silu), name="plain-silu", **_UNBIASED),
    ),
)


def _block(
    x: Any, w_expand: Any, b_expand: Any, w_depth: Any, b_depth: Any, w_project: Any, b_project: Any
) -> Any:
    expanded = op.clip(biased(op.conv2d(x, w_expand), b_expand), a_min=0, a_max=6)
    hidden = op.clip(biased(op.conv2d(expanded, w_depth), b_depth), a_min=0, a_max=6)
    y = biased(op.conv2d(hidden, w_project), b_project)
    return either(op.add(y, x), y)


def _check_block(match: Any) -> None:
    direct_layout(match)
    _pointwise(match, 0)
    _depthwise(match, 1)
    _pointwise(match, 2)


def _inverted(groups: int, residual: bool, **attrs: Any) -> Any:
    def program(
        x: Any,
        w_expand: Any,
        b_expand: Any,
        w_depth: Any,
        b_depth: Any,
        w_project: Any,
        b_project: Any,
    ) -> Any:
        expanded = op.clip(op.bias_add(op.conv2d(x, w_expand), b_expand))
        hidden = op.clip(op.bias_add(op.conv2d(expanded, w_depth, groups=groups, **attrs), b_depth))
        y = op.bias_add(op.conv2d(hidden, w_project), b_project)
        return op.add(x, y) if residual else y

    return program


def _unbiased_block(x: Any, w_expand: Any, w_depth: Any, w_project: Any) -> Any:
    expanded = op.clip(op.conv2d(x, w_expand))
    hidden = op.clip(op.conv2d(expanded, w_depth, groups=18, padding=1))
    return op.add(op.conv2d(hidden, w_project), x)


_BLOCK = ("w_expand", "b_expand", "w_depth", "b_depth", "w_project", "b_project")


def _sizes(channels: int, expanded: int, out: int) -> dict[str, Any]:
    return {
        "w_expand": (expanded, channels, 1, 1),
        "b_expand": (expanded,),
        "w_depth": (expanded, 1, 3, 3),
        "b_depth": (expanded,),
        "w_project": (out, expanded, 1, 1),
        "b_project": (out,),
    }


inverted_residual = Composite(
    "inverted_residual",
    _block,
    direct_schedule.CPU,
    check=_check_block,
    compute={"conv2d": direct.conv2d},
    pack={name: direct.pack_weight for name in ("w_expand", "w_depth", "w_project")},
    why="the expanded activations, six times the size of the input, never leave the kernel",
    cases=(
        Case(
            _inverted(144, True, padding=1),
            name="mobilenet-v2",
            x=(1, 24, 56, 56),
            **_sizes(24, 144, 24),
            constants=_BLOCK,
        ),
        Case(
            _inverted(96, False, padding=1, strides=2),
            name="stride-2",
            x=(2, 16, 31, 27),
            **_sizes(16, 96, 24),
            constants=_BLOCK,
        ),
        Case(
            _inverted(30, True, padding=1),
            name="runtime-weight",
            x=(1, 5, 7, 7),
            **_sizes(5, 30, 5),
        ),
        Case(
            _inverted(42, False, padding=(0, 1, 1, 0)),
            name="asymmetric",
            x=(1, 7, 13, 9),
            **_sizes(7, 42, 9),
            constants=_BLOCK,
        ),
        Case(
            _unbiased_block,
            name="unbiased",
            x=(1, 3, 11, 10),
            w_expand=(18, 3, 1, 1),
            w_depth=(18, 1, 3, 3),
            w_project=(3, 18, 1, 1),
        ),
    ),
)
