"""What op info is made of, and how it is kept on a function."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...common import structured
from ...errors import OpInfoError
from ...graph import Shape, Symbol
from ...tvm.types import Attrs
from .accesses import Accesses, from_data
from .layout_names import layouts_of
from .layout_rules import sensitive
from .pattern_kind import pattern_kind
from .source import OP, PARAM, Source, from_plain, to_plain
from .unknown import UNKNOWN, Unknown

OP_INFO = "tefuse.op_info"
# As TVM says it of the graph's functions: "tefuse.<name>".
COMPOSITE = "Composite"

# Which buffer holds a tensor: ("param", position of the parameter), ("block", position of the block
# that writes it), or None for one that no buffer holds.
Ref = tuple[str, int] | None


@dataclass(frozen=True)
class TensorInfo:
    """A tensor of an op. Also a pair: `shape, dtype = info.outputs[0]`.

    `layout` is such as "NCHW" where the op defines one, else None: the axes are the op's own.
    UNKNOWN says that the layout was changed in a way that cannot be followed.
    """

    # tuple[int, ...], or UNKNOWN. A symbolic extent is its text, such as "n", or the number that it
    # was read at, which prints as the text (graph.Symbol); None: not known when compiling.
    shape: Any
    dtype: Any  # str, or UNKNOWN
    layout: str | Unknown | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.shape, self.dtype))

    def __getitem__(self, index: int) -> Any:
        return (self.shape, self.dtype)[index]

    def __repr__(self) -> str:
        axes = "?" if self.shape is UNKNOWN else ", ".join(map(str, self.shape))
        dtype = "?" if self.dtype is UNKNOWN else self.dtype
        return f"{dtype}[{axes}]" + ("" if self.layout is None else f" {self.layout!r}")


@dataclass(frozen=True)
class OpInfo:
    """One op of a function: what it was in the graph, in the function's present layouts.

    name       its name in the function, such as `conv2d_1`
    kind       its kind in the vocabulary, such as `conv2d`
    attrs      its attributes; a value that a layout change hid is UNKNOWN
    blocks     the function's blocks that belong to it, in order
    within     the op whose blocks compute it, where it has none: it was inlined there
    composite  the one in whose kernel it is, if any
    sources    where each input comes from (`Source`): an op's output, a parameter, a constant
    """

    name: str
    kind: str
    attrs: Mapping[str, Any]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    blocks: tuple[str, ...] = ()
    pattern: str = ""  # TVM's pattern kind: elemwise, broadcast, injective, comm_reduce, ...
    within: str = ""
    composite: str = ""
    sources: tuple[Source, ...] = ()

    @property
    def layout_sensitive(self) -> tuple[str, ...]:
        """The attributes whose meaning depends on a layout."""
        return sensitive(self.kind, self.attrs)

    def to_dict(self) -> dict[str, str]:
        """Plain data, as `--json` prints it."""
        return {
            "name": self.name, "kind": self.kind, "pattern": self.pattern,
            "attrs": _plain(self.attrs), "layout_sensitive": list(self.layout_sensitive),
            "inputs": [_tensor_data(t) for t in self.inputs],
            "outputs": [_tensor_data(t) for t in self.outputs],
            "blocks": list(self.blocks), "within": self.within, "composite": self.composite,
            "sources": list(map(to_plain, self.sources)),
        }  # fmt: skip


def describe(
    name: str,
    kind: str,
    attrs: Attrs,
    inputs: Sequence[tuple[Shape, str]],
    outputs: Sequence[tuple[Shape, str]],
    pattern: str = "",
) -> OpInfo:
    """The op info of an op in the layouts that its own attributes define."""
    attrs = dict(attrs)
    if kind == "conv2d" and "O" in str(attrs.get("kernel_layout", "")):
        attrs["channels"] = inputs[1][0][attrs["kernel_layout"].index("O")]
    ins, outs = (
        tuple(
            TensorInfo(tuple(shape), dtype, layout)
            for (shape, dtype), layout in zip(
                tensors, layouts_of(kind, attrs, len(tensors), side), strict=True
            )
        )
        for side, tensors in (("inputs", inputs), ("outputs", outputs))
    )
    in_place = any(t.shape == o.shape for t in ins for o in outs)
    return OpInfo(name, kind, attrs, ins, outs, pattern=pattern or pattern_kind(kind, in_place))


@dataclass(frozen=True)
class Recorded:
    """What a function keeps: its ops, where their tensors are, and what layouts are read off.

    `results` says for each output parameter of the function what it holds.
    """

    ops: tuple[OpInfo, ...]
    refs: tuple[tuple[tuple[Ref, ...], tuple[Ref, ...]], ...]
    accesses: Accesses = field(repr=False)
    seal: str = ""
    results: tuple[Source, ...] = ()


def to_json(recorded: Recorded) -> str:
    """As the attribute's text."""
    data = {
        "ops": [info.to_dict() for info in recorded.ops],
        "refs": recorded.refs,
        "accesses": recorded.accesses.to_data(),
        "seal": recorded.seal,
        "results": list(map(to_plain, recorded.results)),
    }
    return json.dumps(data, separators=(",", ":"))


def from_json(text: str) -> Recorded:
    """The inverse; OpInfoError for a text that is no op info."""
    try:
        data = structured.loads(text)
        ops = tuple(map(info_from, data["ops"]))
        refs = tuple((_refs(ins), _refs(outs)) for ins, outs in data["refs"])
        accesses = from_data(data["accesses"])
        # A function of an older version says nothing of edges.
        results = tuple(map(from_plain, data.get("results", ())))
        return _checked(Recorded(ops, refs, accesses, str(data["seal"]), results))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as err:
        raise OpInfoError(
            f"the attribute {OP_INFO} is damaged: {type(err).__name__}: {err}"
        ) from err


def _checked(recorded: Recorded) -> Recorded:
    """What is said of one op must be said of all, and of buffers that there are."""
    then = recorded.accesses
    if len(recorded.refs) != len(recorded.ops):
        raise ValueError(f"{len(recorded.ops)} ops, but tensors of {len(recorded.refs)}")
    for info, (ins, outs) in zip(recorded.ops, recorded.refs, strict=True):
        if len(info.inputs) != len(ins) or len(info.outputs) != len(outs):
            raise ValueError(f"{info.name}: tensors and buffers differ in number")
        for ref in (*ins, *outs):
            if ref is not None and ref[0] == "block":
                _ = then.blocks[ref[1]].stores[0]
            elif ref is not None:
                _ = then.shapes[then.params[ref[1]]]
    _check_sources(recorded)
    return recorded


def _check_sources(recorded: Recorded) -> None:
    """Edges are between ops, and from parameters, that there are."""
    counts = {info.name: len(info.outputs) for info in recorded.ops}
    for info in recorded.ops:
        if info.sources and len(info.sources) != len(info.inputs):
            raise ValueError(f"{info.name}: {len(info.inputs)} inputs from {len(info.sources)}")
    for source in (*(s for info in recorded.ops for s in info.sources), *recorded.results):
        if source.kind == OP and not 0 <= source.index < counts.get(source.name, 0):
            raise ValueError(f"no op has the output {source}")
        if source.kind == PARAM:
            _ = recorded.accesses.params[source.index]


def info_from(data: Mapping[str, Any]) -> OpInfo:
    """The inverse of `OpInfo.to_dict`."""
    return OpInfo(
        str(data["name"]), str(data["kind"]),
        {str(k): _value(v) for k, v in data["attrs"].items()},
        tuple(map(_tensor_from, data["inputs"])), tuple(map(_tensor_from, data["outputs"])),
        tuple(map(str, data["blocks"])), str(data["pattern"]), str(data["within"]),
        str(data["composite"]), tuple(map(from_plain, data.get("sources", ()))),
    )  # fmt: skip


def _refs(found: Any) -> tuple[Ref, ...]:
    return tuple(None if ref is None else (str(ref[0]), int(ref[1])) for ref in found)


def _tensor_data(tensor: TensorInfo) -> list[object]:
    return [_plain(tensor.shape), _plain(tensor.dtype), _plain(tensor.layout)]


def _tensor_from(data: Any) -> TensorInfo:
    shape, dtype, layout = data
    return TensorInfo(_value(shape), str(dtype), _value(layout))


def _plain(value: Any) -> Any:
    """Data that JSON knows; UNKNOWN and symbols that were read as objects."""
    if value is UNKNOWN:
        return {"unknown": True}
    if isinstance(value, Symbol):
        return {"symbol": value.name, "read_at": int(value)}
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _value(data: Any) -> Any:
    """The inverse: JSON has lists where there were tuples."""
    if isinstance(data, dict):
        if data == {"unknown": True}:
            return UNKNOWN
        if data.keys() == {"symbol", "read_at"}:
            return Symbol(int(data["read_at"]), str(data["symbol"]))
        return {name: _value(inner) for name, inner in data.items()}
    return tuple(map(_value, data)) if isinstance(data, list) else data
