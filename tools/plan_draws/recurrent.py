"""How recurrent layers are drawn."""

from __future__ import annotations

from selfbyoc.ops.cells import DIRECTIONS, FUNCTIONS, GATES, LSTM, NAMES

from . import sizes
from .drawing import Drawing


def recurrent(d: Drawing, at: int) -> None:
    """Directions, activations and options of a layer, and all its arguments."""
    kind, (gates, weight, hidden, *more) = d.node(at).kind, d.node(at).inputs
    direction = d.rng.choice(tuple(DIRECTIONS))
    sides, count = len(DIRECTIONS[direction]), GATES[kind]
    words = [d.rng.choice(NAMES) for _ in range(FUNCTIONS[kind] * sides)]
    option = {"rnn": (), "gru": ("linear_before_reset",)}.get(kind, ("input_forget",))
    d.set(
        at, direction=direction, activations=" ".join(words), clip=d.rng.choice((0.0, 0.0, 0.5)),
        **{name: d.rng.random() < 0.5 for name in option},
    )  # fmt: skip
    length, batch = sizes.extent(d.rng, 70), sizes.batch(d.rng)
    units = sizes.extent(d.rng, 1024)
    d.need(gates, (length, batch, sides * count * units))
    d.need(weight, (sides, count * units, units))
    states = [(sides, d.rng.choice((1, batch)), units) for _ in range(2)]
    d.need(hidden, states[0])
    others = [states[1], (sides, 3 * units)] if kind in LSTM else [(sides, units)]
    for value, shape in zip(more, others, strict=False):
        d.need(value, shape)
