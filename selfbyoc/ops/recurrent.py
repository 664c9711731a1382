"""Recurrent layers over a whole sequence: LSTM, GRU, RNN, one direction or both.

The products of the inputs of all steps (`gates`) are one product before the layer, which is no part
of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..graph import OpCall
from ..tvm.types import Attr, Shape
from .attrs import Raw, like
from .cells import DIRECTIONS, GATES, LSTM, Cell, cells
from .kind import OWN, Array, OpKind, Typed, form
from .recurrent_nest import plain


def result_types(kind: str) -> Callable[[Sequence[Typed], Raw], list[Typed]]:
    """The results' types: the states of all steps, and an LSTM's cell states."""

    def types(ins: Sequence[Typed], attrs: Raw) -> list[Typed]:
        ((length, batch, width), dtype), ((directions, rows, units), _), *rest = ins
        sides = len(DIRECTIONS[attrs["direction"]])
        if directions != sides:
            raise ValueError(f"weight: expected {sides} directions, found {directions}")
        if rows != GATES[kind] * units or width != rows * sides:
            text = f"expected {GATES[kind]} * {units} rows and {sides} times as many gates"
            raise ValueError(f"{text}, found {rows} and {width}")
        if len({dtype for _, dtype in ins}) > 1 or not dtype.startswith("float"):
            raise ValueError(f"expected floats of one dtype, found {[d for _, d in ins]}")
        _check_rest(kind, [shape for shape, _ in rest], (sides, batch, units))
        return [((length, directions, batch, units), dtype)] * (2 if kind in LSTM else 1)

    return types


def _check_rest(kind: str, shapes: Sequence[Shape], state: tuple[int, ...]) -> None:
    """Raise ValueError for states, a bias or peepholes of other sizes."""
    sides, _, units = state
    states = 2 if kind in LSTM else 1
    for name, shape in zip(("hidden", "cell"), shapes[:states], strict=False):
        if not _is_state(shape, state):
            text = f"{name}: expected {list(state)}, or a batch of 1"
            raise ValueError(f"{text}, found {list(shape)}")
    wanted = (sides, units if kind == "gru" else 3 * units)
    for shape in shapes[states:]:
        if tuple(shape) != wanted:
            name = "bias" if kind == "gru" else "peepholes"
            raise ValueError(f"{name}: expected {list(wanted)}, found {list(shape)}")


def _is_state(shape: Sequence[int], expected: tuple[int, ...]) -> bool:
    """Whether a state is of these directions, rows and units, as far as sizes are numbers."""
    sides, rows, units = shape
    is_known = isinstance(rows, int) and isinstance(expected[1], int)
    return (sides, units) == expected[::2] and (not is_known or rows in (1, expected[1]))


def _numpy(ins: Sequence[Array], call: OpCall) -> Array | list[Array]:
    """Step by step, as ONNX defines it."""
    gates, weight, hidden = ins[:3]
    made = cells(call.kind, call.attrs, arrays=True)
    sides = zip(DIRECTIONS[call.attrs["direction"]], made, strict=True)
    found = []
    for d, (back, cell) in enumerate(sides):
        width = weight.shape[1]
        inputs = gates[::-1] if back else gates
        inputs = inputs[:, :, d * width :][:, :, :width]
        own = [array[d] for array in ins[3:]]
        steps = list(_steps(cell, inputs, weight[d], hidden[d], own))
        outs = [np.stack(out) for out in zip(*steps, strict=True)]
        found.append([out[::-1] if back else out for out in outs])
    results = [np.stack(out, axis=1) for out in zip(*found, strict=True)]
    return results if len(results) > 1 else results[0]


def _steps(
    cell: Cell, inputs: Array, weight: Array, hidden: Array, own: Sequence[Array]
) -> Iterator[tuple[Array, ...]]:
    """What the steps of one direction give, in their order."""
    units = hidden.shape[-1]
    cell_state = own[0] if cell.kind in LSTM else None
    for x in inputs:
        sums = [x[:, g * units :][:, :units] for g in range(cell.gates)]
        parts = [weight[g * units :][:units].T for g in range(cell.gates)]
        if cell.kind == "gru":
            hidden = _gru(cell, sums, parts, hidden, own[0])
            yield (hidden,)
            continue
        seen = _quantized(hidden) if cell.rounds else hidden
        sums = [s + seen @ part for s, part in zip(sums, parts, strict=True)]
        if cell_state is None:
            hidden = cell.gate(0, sums[0])
            yield (hidden,)
            continue
        looks = list(own[1].reshape(3, units)) if cell.kind == "peephole_lstm" else []
        cell_state = cell.cell_state(sums, cell_state, looks)
        hidden = cell.hidden_state(sums, cell_state, looks)
        yield hidden, cell_state


def _quantized(state: Array) -> Array:
    """A state as 8 bits give it back, whose scale and zero point follow from all of it."""
    low, high = min(float(state.min()), 0.0), max(float(state.max()), 0.0)
    scale = state.dtype.type(high - low) / state.dtype.type(255) if high > low else 1
    zero = np.clip(np.rint(-low / scale), 0, 255)
    found: Array = (np.clip(np.rint(state / scale) + zero, 0, 255) - zero) * scale
    return found.astype(state.dtype)


def _gru(cell: Cell, sums: list[Array], parts: list[Array], hidden: Array, bias: Array) -> Array:
    seen = [s + hidden @ part for s, part in zip(sums[:2], parts[:2], strict=True)]
    reset = cell.reset(seen)
    if cell.attrs["linear_before_reset"]:
        candidate = sums[2] + reset * (hidden @ parts[2] + bias)
    else:
        candidate = sums[2] + (reset * hidden) @ parts[2] + bias
    mixed: Array = cell.mixed(seen, candidate, hidden)
    return mixed


_COMMON = {"direction": "forward", "clip": 0.0}
_LSTM = {
    "activations": "sigmoid tanh tanh", **_COMMON, "input_forget": False, "quantized_state": False,
}  # fmt: skip


def _kind(name: str, takes: str, attrs: dict[str, Attr], doc: str) -> OpKind:
    own = form(OWN + name, like(attrs))
    return OpKind(
        name, plain, _numpy, inputs=len(takes.split()), attrs=attrs, relay=own, relax=own,
        takes=takes, doc=doc, types=result_types(name),
    )  # fmt: skip


KINDS = (
    _kind(
        "lstm", "gates weight hidden cell", _LSTM,
        "The states of all steps of an LSTM, [length, directions, batch, units], and its cell "
        "states. gates is [length, batch, directions * 4 * units], the products of all inputs: "
        "input, output, forget and candidate of one direction after those of the other; weight "
        "[directions, 4 * units, units]; hidden and cell [directions, batch, units], before the "
        "first step. quantized_state is ONNX Runtime's DynamicQuantizeLSTM: what goes into a "
        "step's product is the state of the whole batch as 8 bits give it back.",
    ),
    _kind(
        "peephole_lstm", "gates weight hidden cell peepholes", _LSTM,
        "An LSTM whose gates see the cell state, by peepholes [directions, 3 * units].",
    ),
    _kind(
        "gru", "gates weight hidden bias",
        {"activations": "sigmoid tanh", **_COMMON, "linear_before_reset": False},
        "The states of all steps of a GRU, as of an LSTM, of gates update, reset and candidate; "
        "bias [directions, units] is added to the candidate's product with the state.",
    ),
    _kind(
        "rnn", "gates weight hidden", {"activations": "tanh", **_COMMON},
        "The states of all steps of a plain recurrent layer, as of an LSTM, with one gate.",
    ),
)  # fmt: skip
