"""Gated layers as one kernel: activation(dense(x)) * dense(x), as of Llama's and Gemma's MLP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.kernel import Kernel
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import either, op
from ..kernels.rows.few_bits.kernel import GATED_FEW_BITS
from ..kernels.rows.gated import WEIGHTS, compute, pack, plan, schedule
from .dense import check_bias, check_held, held
from .few_bits import check_few_bits
from .sizes import check_sizes

if TYPE_CHECKING:
    from ...language.nodes import Node


def _gated(gate: Node, up: Node) -> Node:
    return op.multiply(either(op.silu(gate), op.gelu(gate), op.gelu_tanh(gate)), up)


def _biased(y: Node, bias: Node) -> Node:
    return either(op.bias_add(y, bias), y)


def _pattern(x: Node, gate: Node, up: Node, gate_bias: Node, up_bias: Node) -> Node:
    first = _biased(op.dense(x, held(gate)), gate_bias)
    return _gated(first, _biased(op.dense(x, held(up)), up_bias))


def _check(match: Match) -> None:
    check_sizes(match)
    check_bias(match)
    check_held(match)
    alike(match, *WEIGHTS)


def alike(match: Match, gate: str, up: str) -> None:
    """Both weights have one type, so that one plan serves."""
    types = [match.args[name].type for name in (gate, up)]
    require(types[0] == types[1], f"{gate} is {types[0]}, and {up} {types[1]}")


def _case(program: Program, *x: int, units: int, dtype: str = "float32", **others: Any) -> Case:
    weight = (units, x[-1]), dtype
    constants = [*WEIGHTS, *others]
    return Case(program, x=x, gate=weight, up=weight, constants=constants, **others)


def _plain(x: Node, gate: Node, up: Node) -> Node:
    return op.multiply(op.silu(op.dense(x, gate)), op.dense(x, up))


def _turned(x: Node, gate: Node, up: Node) -> Node:
    return op.multiply(op.dense(x, up), op.gelu_tanh(op.dense(x, gate)))


def _of_halves(x: Node, gate: Node, up: Node) -> Node:
    return _plain(x, op.half_weight(gate), op.half_weight(up))


def _with_biases(x: Node, gate: Node, up: Node, gate_bias: Node, up_bias: Node) -> Node:
    first = op.bias_add(op.dense(x, gate), gate_bias, axis=-1)
    return op.multiply(op.gelu(first), op.bias_add(op.dense(x, up), up_bias, axis=-1))


gated_dense = Composite(
    "gated_dense",
    _pattern,
    kernel=Kernel(plan, compute, schedule, pack=dict.fromkeys(WEIGHTS, pack)),
    check=_check,
    epilogue=True,
    why="rows are read once, and what gates what never leaves the registers",
    cases=(
        _case(_plain, 1, 96, units=80),
        _case(_plain, 7, 33, units=17),
        _case(_turned, 2, 19, 64, units=48),
        _case(_of_halves, 6, 40, units=33, dtype="float16"),
        _case(_with_biases, 5, 45, units=50, gate_bias=(50,), up_bias=(50,)),
        _case(_plain, 128, 256, units=704),
    ),
)


def _few_bits_pattern(
    x: Node, levels: Node, scale: Node, zero: Node, up_levels: Node, up_scale: Node, up_zero: Node
) -> Node:
    def both(rows: Callable[[], Node]) -> Node:
        weights = (levels, scale, zero), (up_levels, up_scale, up_zero)
        return _gated(*(op.dense(rows(), op.dequantize_groups(*weight)) for weight in weights))

    return either(both(lambda: op.fake_quantize_groups(x)), both(lambda: x))


def _check_few_bits(match: Match) -> None:
    check_few_bits(match)
    for name in ("levels", "scale", "zero"):
        alike(match, name, f"up_{name}")
    for kind in ("dequantize_groups", "fake_quantize_groups"):
        attrs = [call.attrs for call in match.of(kind)]
        require(attrs[1:] in ([], attrs[:1]), f"{kind} of {' and of '.join(map(str, attrs))}")


def _levels(
    *x: int, units: int, bits: int, group: int, rounded: bool, has_one_zero: bool = False
) -> Case:
    def program(
        x: Node, levels: Node, scale: Node, zero: Node,
        up_levels: Node, up_scale: Node, up_zero: Node,
    ) -> Node:  # fmt: skip
        def product(*weight: Node) -> Node:
            rows = op.fake_quantize_groups(x, group=group) if rounded else x
            return op.dense(rows, op.dequantize_groups(*weight, bits=bits, group=group))

        first, second = product(levels, scale, zero), product(up_levels, up_scale, up_zero)
        return op.multiply(op.silu(first), second)

    factors = units, -(-x[-1] // group)
    weight: dict[str, Any] = {
        "levels": ((units, x[-1]), "uint8"), "scale": (factors, "float16"),
        "zero": ((1, 1) if has_one_zero else factors, "uint8"),
    }  # fmt: skip
    both = weight | {f"up_{name}": value for name, value in weight.items()}
    return Case(program, x=x, constants=[*both], **both)


gated_few_bits = Composite(
    "gated_few_bits",
    _few_bits_pattern,
    kernel=GATED_FEW_BITS,
    check=_check_few_bits,
    epilogue=True,
    why="rows are rounded once, and what gates what never leaves the registers",
    cases=(
        _levels(1, 96, units=80, bits=4, group=32, rounded=True, has_one_zero=True),
        _levels(1, 200, units=33, bits=8, group=64, rounded=False),
        _levels(2, 5, 70, units=19, bits=4, group=32, rounded=True),
        _levels(67, 160, units=48, bits=8, group=32, rounded=True, has_one_zero=True),
        _levels(128, 256, units=64, bits=4, group=128, rounded=False),
    ),
)
