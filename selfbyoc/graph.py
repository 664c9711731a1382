"""The matched ops without any graph IR: values, op calls, and the graph they form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

Shape = tuple[Any, ...]  # int, or None: an extent that is unknown when compiling


HALVES = ("float16", "bfloat16")


def type_text(shape: Iterable[int | None], dtype: str) -> str:
    """`float32[1, 64, 56, 56]`; an extent that is open is `dynamic`."""
    return f"{dtype}[{', '.join('dynamic' if e is None else str(e) for e in shape)}]"


class Symbol(int):
    """A size at which a symbol is read, that messages call by the symbol's name; or what follows
    from such sizes, by its text: `n + 1`.
    """

    name: str

    def __new__(cls, size: int, name: str) -> Symbol:
        found = super().__new__(cls, size)
        found.name = name
        return found

    def __getnewargs__(self) -> tuple[int, str]:  # type: ignore[override]
        return int(self), self.name

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


def symbols_in(values: Iterable[Value]) -> dict[str, int]:
    """The symbols among the extents of some values, with the sizes at which they are read."""
    found = (extent for value in values for extent in value.shape)
    symbols = (e for e in found if isinstance(e, Symbol) and e.name.isidentifier())
    return {symbol.name: int(symbol) for symbol in symbols}


def sizes_text(sizes: Mapping[str, int]) -> str:
    """`batch=113, n=131`: a size for each symbol."""
    return ", ".join(f"{name}={int(size)}" for name, size in sizes.items())


@dataclass(frozen=True, eq=False)
class Value:
    """One tensor. `shape` holds None for an extent that is unknown when compiling.

    `is_constant` says that the caller passes a constant; `scalar` is the value of one with a
    single element; `seven_bits` says of one of bytes that each is within 64 of their middle. `held`
    is the dtype of the halves that floats are stored in, `as_held` whether a product may be one of
    that dtype: what they are multiplied by is rounded to it, too. `data` is the array of a constant
    that a function holds itself.
    """

    shape: Shape
    dtype: str
    name: str = ""
    is_constant: bool = False
    scalar: float | int | None = None
    seven_bits: bool = False
    held: str = ""
    as_held: bool = False
    data: Any = field(default=None, repr=False)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every extent is known."""
        return None not in self.shape

    @property
    def type(self) -> str:
        """`float32[1, 64, 56, 56]`, for messages."""
        return type_text(self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"{self.name or 'value'}: {self.type}"


@dataclass(frozen=True, eq=False)
class OpCall:
    """One op: its neutral kind, its attributes, its values, and the IR nodes it was read from."""

    kind: str
    inputs: tuple[Value, ...]
    attrs: Mapping[str, Any]
    outputs: tuple[Value, ...]
    name: str = ""
    sources: tuple[Any, ...] = field(default=(), repr=False)
    # Read as this only because a convolution or product is before it: they are cut out together
    needs_product: bool = field(default=False, repr=False)
    # Ops with the same tie are cut out of the IR together or not at all; see row_rules.py
    tie: object = field(default=None, repr=False)

    def __repr__(self) -> str:
        ins = ", ".join(v.name or v.type for v in self.inputs)
        return f"{self.name or self.kind}({ins}) -> {', '.join(v.type for v in self.outputs)}"


class Graph(Protocol):
    """What patterns are fitted to and rules ask: an OpGraph, or one that rules are rewriting."""

    @property
    def ops(self) -> tuple[OpCall, ...]:
        """In topological order."""

    def producer(self, value: Value) -> OpCall | None:
        """The op that computes a value, or None for an input or a constant."""

    def users(self, value: Value) -> list[OpCall]:
        """The ops that read a value (being returned is not in this list)."""

    def is_output(self, value: Value) -> bool:
        """Whether the graph returns the value."""

    def in_order(self, calls: Iterable[OpCall]) -> tuple[OpCall, ...]:
        """Some of its ops in topological order, each once."""


@dataclass(frozen=True, eq=False)
class OpGraph:
    """Ops in topological order between `inputs` and `outputs`."""

    inputs: tuple[Value, ...]
    ops: tuple[OpCall, ...]
    outputs: tuple[Value, ...]
    # (op as it was written, its kind, op that it was read as or as part of); see canonical.py
    absorbed: tuple[tuple[str, str, str], ...] = ()

    def __post_init__(self) -> None:
        producers = {v: call for call in self.ops for v in call.outputs}
        users: dict[Value, list[OpCall]] = {}
        tied: dict[object, list[OpCall]] = {}
        for call in self.ops:
            if call.tie is not None:
                tied.setdefault(call.tie, []).append(call)
            for value in dict.fromkeys(call.inputs):
                users.setdefault(value, []).append(call)
        object.__setattr__(self, "_producers", producers)
        object.__setattr__(self, "_users", users)
        object.__setattr__(self, "_tied", tied)
        object.__setattr__(self, "_at", {call: n for n, call in enumerate(self.ops)})

    _producers: dict[Value, OpCall] = field(init=False, repr=False, default_factory=dict)
    _users: dict[Value, list[OpCall]] = field(init=False, repr=False, default_factory=dict)
    _tied: dict[object, list[OpCall]] = field(init=False, repr=False, default_factory=dict)
    _at: dict[OpCall, int] = field(init=False, repr=False, default_factory=dict)

    def producer(self, value: Value) -> OpCall | None:
        """The op that computes a value, or None for an input or a constant."""
        return self._producers.get(value)

    def users(self, value: Value) -> list[OpCall]:
        """The ops that read a value (being returned is not in this list)."""
        return self._users.get(value, [])

    def is_output(self, value: Value) -> bool:
        """Whether the graph returns the value."""
        return any(value is out for out in self.outputs)

    def in_order(self, calls: Iterable[OpCall]) -> tuple[OpCall, ...]:
        """Some of its ops in topological order, each once."""
        return tuple(sorted(set(calls), key=self.position))

    def position(self, call: OpCall) -> int:
        """Where an op stands in topological order."""
        return self._at[call]

    def tied(self, call: OpCall) -> list[OpCall]:
        """The ops with the tie of this one, itself among them; none where it has none."""
        return self._tied.get(call.tie, [])

    def __iter__(self) -> Iterator[OpCall]:
        return iter(self.ops)

    def __str__(self) -> str:
        lines = [f"input  {v!r}" for v in self.inputs]
        lines += [f"       {call!r}" for call in self.ops]
        return "\n".join([*lines, *(f"output {v!r}" for v in self.outputs)])


def substitute(graph: OpGraph, new: Mapping[Value, Value]) -> OpGraph:
    """The graph with some values replaced wherever they are read."""
    if not new:
        return graph

    def swap(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(new.get(v, v) for v in values)

    ops = tuple(replace(call, inputs=swap(call.inputs)) for call in graph.ops)
    return OpGraph(swap(graph.inputs), ops, swap(graph.outputs))


def name_ops(ops: Iterable[OpCall]) -> tuple[OpCall, ...]:
    """Give each op a unique name: its kind, and a number from the second on (`conv2d`,
    `conv2d_1`).
    """
    named = []
    for call, name in numbered(ops):
        for index, value in enumerate(call.outputs):
            # In place: a value is known by identity, and its name only serves messages.
            object.__setattr__(value, "name", f"{name}[{index}]" if index else name)
        named.append(replace(call, name=name))
    return tuple(named)


def numbered(ops: Iterable[OpCall]) -> Iterator[tuple[OpCall, str]]:
    """Each op with the name that it has in a function of nothing but these."""
    seen: Counter[str] = Counter()
    for call in ops:
        count = seen[call.kind]
        seen[call.kind] += 1
        yield call, f"{call.kind}_{count}" if count else call.kind
