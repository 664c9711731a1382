"""The inverted residual of MobileNetV2: expand, depthwise, project, and add the input."""

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
from ..kernels.separable.layers import is_first
from ..kernels.separable.plan import plan
from ..kernels.separable.schedule import schedule
from ..kernels.separable.staged import widens
from .convolution import direct_layout
from .depthwise import check_depthwise, check_pointwise, more_than_one, norm_sizes, normed
from .sizes import check_sizes, check_steps

if TYPE_CHECKING:
    from ...language.nodes import Node


def _active(y: Node) -> Node:
    return either(op.clip(y), op.relu(y), op.hard_swish(y))


def _block(
    x: Node,
    w_expand: Node, b_expand: Node, gamma_expand: Node, beta_expand: Node, mean_expand: Node,
    var_expand: Node,
    w_depth: Node, b_depth: Node, gamma_depth: Node, beta_depth: Node,
    mean_depth: Node, var_depth: Node,
    w_project: Node, b_project: Node, gamma_project: Node, beta_project: Node, mean_project: Node,
    var_project: Node,
) -> Node:  # fmt: skip
    expand = (b_expand, gamma_expand, beta_expand, mean_expand, var_expand)
    depth = (b_depth, gamma_depth, beta_depth, mean_depth, var_depth)
    project = (b_project, gamma_project, beta_project, mean_project, var_project)
    expanded = _active(normed(op.conv2d(x, w_expand), *expand))
    hidden = _active(normed(op.conv2d(expanded, w_depth, groups=more_than_one), *depth))
    y = normed(op.conv2d(hidden, w_project), *project)
    return either(op.add(y, x), _active(y), y)


def _check_block(match: Match) -> None:
    direct_layout(match)
    check_sizes(match)
    check_steps(match)
    expand, _, project = match.of("conv2d")
    if not is_first(expand):
        check_pointwise(match, 0)
        hidden, out = expand.outputs[0].shape[1], project.outputs[0].shape[1]
        # A chain of pairs, as in MobileNetV1, is better taken pair by pair.
        require(out < hidden, f"{project.name} must project: {out} channels out of {hidden}")
    check_depthwise(match, 1)
    check_pointwise(match, 2)
    out = match.root.outputs[0]
    same = not match.of("add") or match.x.shape == out.shape
    require(same, f"the input, {match.x.type}, is broadcast to the result's {out.type}")


def _inverted(
    groups: int, residual: bool, last: Callable[[Node], Node] = lambda y: y, **attrs: Attr
) -> Program:
    def program(
        x: Node,
        w_expand: Node,
        b_expand: Node,
        w_depth: Node,
        b_depth: Node,
        w_project: Node,
        b_project: Node,
    ) -> Node:
        expanded = op.clip(op.bias_add(op.conv2d(x, w_expand), b_expand))
        hidden = op.clip(op.bias_add(op.conv2d(expanded, w_depth, groups=groups, **attrs), b_depth))
        y = op.bias_add(op.conv2d(hidden, w_project), b_project)
        return op.add(x, y) if residual else last(y)

    return program


def _first(x: Node, w_expand: Node, w_depth: Node, w_project: Node) -> Node:
    """The first layers of a network, with relu."""
    y = op.relu(op.conv2d(x, w_expand, strides=2, padding=1))
    y = op.relu(op.conv2d(y, w_depth, groups=16, padding=1))
    return op.relu(op.conv2d(y, w_project))


def _of_halves(x: Node, w_expand: Node, w_depth: Node, w_project: Node) -> Node:
    """As a model of bfloat16 is read: the depthwise convolution is one of floats."""
    y = op.relu(op.conv2d(x, op.half_weight(w_expand)))
    y = op.relu(op.conv2d(y, w_depth, groups=51, padding=1))
    return op.conv2d(y, op.half_weight(w_project))


def _normed_block(
    x: Node,
    w_expand: Node, gamma_expand: Node, beta_expand: Node, mean_expand: Node, var_expand: Node,
    w_depth: Node, gamma_depth: Node, beta_depth: Node, mean_depth: Node, var_depth: Node,
    w_project: Node, gamma_project: Node, beta_project: Node, mean_project: Node, var_project: Node,
) -> Node:  # fmt: skip
    """Convolutions each with a batch norm, as in a model whose norms were not folded."""
    y = op.conv2d(x, w_expand)
    y = op.clip(op.batch_norm(y, gamma_expand, beta_expand, mean_expand, var_expand)[0])
    y = op.conv2d(y, w_depth, groups=40, padding=2)
    y = op.clip(op.batch_norm(y, gamma_depth, beta_depth, mean_depth, var_depth)[0])
    y = op.conv2d(y, w_project)
    y = op.batch_norm(y, gamma_project, beta_project, mean_project, var_project, epsilon=1e-3)[0]
    return op.add(y, x)


def _unbiased_block(x: Node, w_expand: Node, w_depth: Node, w_project: Node) -> Node:
    """And with other bounds than 0 and 6: what is outside the image stays zero."""
    expanded = op.clip(op.conv2d(x, w_expand), a_min=0.5, a_max=4)
    hidden = op.clip(op.conv2d(expanded, w_depth, groups=18, padding=1), a_min=-1, a_max=3)
    return op.add(op.conv2d(hidden, w_project), x)


def _gated_block(x: Node, w_expand: Node, w_depth: Node, w_project: Node) -> Node:
    """As MobileNetV3's without squeeze-and-excitation; with a gate after the projection, too."""
    y = op.hard_swish(op.conv2d(x, w_expand))
    y = op.hard_swish(op.conv2d(y, w_depth, groups=26, strides=2, padding=2))
    return op.hard_swish(op.conv2d(y, w_project))


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
    check=_check_block,
    kernel=Kernel(
        plan,
        compute.inverted_residual,
        schedule,
        {
            "w_expand": pack.pack_expansion,
            "w_depth": pack.pack_blocks,
            "w_project": pack.pack_projection,
        },
        widens=widens,
    ),
    epilogue=True,
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
            _inverted(42, False, op.clip, padding=(0, 1, 1, 0)),
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
        Case(
            _gated_block,
            name="hard-swish",
            x=(1, 7, 19, 14),
            w_expand=(26, 7, 1, 1),
            w_depth=(26, 1, 5, 5),
            w_project=(11, 26, 1, 1),
            constants=("w_expand", "w_depth", "w_project"),
        ),
        Case(
            _first,
            name="first",
            x=(1, 3, 35, 32),
            w_expand=(16, 3, 3, 3),
            w_depth=(16, 1, 3, 3),
            w_project=(24, 16, 1, 1),
            constants=("w_expand", "w_depth", "w_project"),
        ),
        Case(
            _of_halves,
            name="bfloat16",
            generations=("relax",),
            x=(1, 21, 12, 13),
            w_expand=((51, 21, 1, 1), "bfloat16"),
            w_depth=(51, 1, 3, 3),
            w_project=((33, 51, 1, 1), "bfloat16"),
            constants=("w_expand", "w_depth", "w_project"),
        ),
        Case(
            _normed_block,
            name="batch-norm-5x5",
            x=(2, 10, 33, 17),
            w_expand=(40, 10, 1, 1),
            w_depth=(40, 1, 5, 5),
            w_project=(10, 40, 1, 1),
            **norm_sizes(expand=40, depth=40, project=10),
            constants=("w_expand", "w_depth", "w_project"),
        ),
    ),
)
