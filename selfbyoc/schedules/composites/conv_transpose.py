"""conv2d_transpose and conv1d_transpose (+bias) (+relu, clip, silu, hard_swish)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import op
from ...tvm.types import Attr, Shape
from ..kernels.conv.transposed.schedule import OF_IMAGES, OF_ROWS
from .convolution import activated, biased

if TYPE_CHECKING:
    from ...language.nodes import Node

_LAYOUTS = {
    "conv2d_transpose": ("NCHW", "IOHW", "NCHW"),
    "conv1d_transpose": ("NCW", "IOW", "NCW"),
}


def _check(match: Match) -> None:
    (conv,) = [call for kind in _LAYOUTS for call in match.of(kind)]
    dtypes = sorted({v.dtype for v in (*conv.inputs, *conv.outputs)})
    require(dtypes == ["float32"], f"only float32 is scheduled, found {', '.join(dtypes)}")
    found = tuple(conv.attrs[f"{of}_layout"] for of in ("data", "kernel", "out"))
    wanted = _LAYOUTS[conv.kind]
    text = f"only {', '.join(wanted)} are scheduled, found {', '.join(found)}"
    require(found == wanted, f"{conv.name}: {text}")
    groups, apart = conv.attrs["groups"], tuple(conv.attrs["dilation"])
    require(groups == 1, f"{conv.name}: only one group is scheduled, found {groups}")
    plain = set(apart[-1:] if conv.kind == "conv1d_transpose" else apart) == {1}
    require(plain, f"{conv.name}: only a dilation of 1 is scheduled, found {apart}")
    out = conv.outputs[0].shape[2:]
    steps = tuple(conv.attrs["strides"])[-len(out) :]
    wide = all(extent >= step for extent, step in zip(out, steps, strict=True))
    require(wide, f"{conv.name}: each step of {steps} needs a pixel, found {out}")


def _program(kind: str, last: Callable[[Node], Node] = op.relu, **attrs: Attr) -> Program:
    def program(x: Node, weight: Node, bias: Node) -> Node:
        return last(op.bias_add(getattr(op, kind)(x, weight, **attrs), bias))

    return program


def _bare(kind: str, **attrs: Attr) -> Program:
    return lambda x, weight: getattr(op, kind)(x, weight, **attrs)


def _made(kind: str) -> tuple[Callable[..., Case], Callable[..., Case]]:
    """A function that makes cases of biased ones, and of bare ones."""

    def biased_case(
        name: str, x: Shape, weight: Shape, last: Callable[[Node], Node] = op.relu, **attrs: Attr
    ) -> Case:
        return Case(
            _program(kind, last, **attrs), name=name, x=x, weight=weight, bias=(weight[1],),
            constants=("weight", "bias"),
        )  # fmt: skip

    def bare_case(name: str, x: Shape, weight: Shape, constant: bool = True, **attrs: Attr) -> Case:
        constants = ("weight",) if constant else ()
        program = _bare(kind, **attrs)
        return Case(program, name=name, x=x, weight=weight, constants=constants)

    return biased_case, bare_case


_biased2d, _bare2d = _made("conv2d_transpose")
_biased1d, _bare1d = _made("conv1d_transpose")
_WHY = "as ordinary convolutions, nothing is multiplied by the zeros of a spread image"

conv2d_transpose = Composite(
    "conv2d_transpose",
    lambda x, weight, bias: activated(biased(op.conv2d_transpose(x, weight), bias)),
    check=_check,
    kernel=OF_IMAGES,
    why=_WHY,
    cases=(
        _biased2d("2x2", (1, 64, 28, 28), (64, 32, 2, 2), strides=2),
        _biased2d("4x4", (1, 32, 16, 16), (32, 16, 4, 4), strides=2, padding=1),
        _biased2d(
            "3x3", (2, 7, 9, 11), (7, 5, 3, 3), op.silu,
            strides=2, padding=1, output_padding=1,
        ),
        _biased2d("hard-swish", (1, 5, 7, 6), (5, 6, 3, 3), op.hard_swish, strides=2),
        _biased2d("stride-1", (1, 9, 8, 7), (9, 19, 3, 3), op.clip, padding=1),
        _bare2d("stride-3", (1, 5, 6, 5), (5, 3, 5, 4), strides=3, padding=(2, 1)),
        _bare2d("gaps", (1, 3, 4, 5), (3, 4, 2, 1), strides=3, output_padding=2),
        _bare2d("cropped", (2, 6, 7, 5), (6, 4, 3, 3), strides=(2, 1), padding=2),
        _bare2d("uneven", (1, 4, 5, 6), (4, 2, 4, 5), strides=(1, 2), padding=(0, 1, 2, 3)),
        _bare2d("runtime", (1, 8, 5, 9), (8, 17, 4, 4), False, strides=2, padding=1),
        _bare2d("to-one", (1, 16, 10, 10), (16, 1, 4, 4), strides=2, padding=1),
    ),
)  # fmt: skip

conv1d_transpose = Composite(
    "conv1d_transpose",
    lambda x, weight, bias: activated(biased(op.conv1d_transpose(x, weight), bias)),
    check=_check,
    kernel=OF_ROWS,
    why=_WHY,
    cases=(
        _biased1d("vocoder", (1, 64, 40), (64, 32, 16), strides=8, padding=4),
        _biased1d("limited", (1, 6, 10), (6, 3, 4), op.clip, strides=2, padding=1),
        _biased1d("hard-swish", (1, 5, 9), (5, 4, 3), op.hard_swish, strides=2),
        _biased1d("gated", (2, 4, 11), (4, 3, 3), op.silu, strides=2),
        _bare1d("tail", (2, 5, 13), (5, 3, 5), strides=3, padding=2, output_padding=1),
        _bare1d("stride-1", (1, 4, 9), (4, 6, 3), False, padding=1),
    ),
)
