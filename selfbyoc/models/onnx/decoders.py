"""ONNX Runtime's GroupQueryAttention, as its GenAI builder writes decoders with it.

    y, present_key, present_value = GroupQueryAttention(
        q, k, v, past_key, past_value, seqlens_k, total, cos, sin)

    q, k     = rotary(q), rotary(k)                  at positions total - length to total
    present  = Concat(past, new, axis=2)             [batch, kv_heads, total, depth]
    keys     = present, each head for all heads of queries that share it
    y        = Softmax(q @ keys.T * scale + mask) @ values
    mask     = 0 where a key is no later than its query, and within the window; else -inf

q is [batch, length, heads * depth]; or q, k and v lie in it one behind the other, and k and v are
left out. What is assumed, for no size tells it: `seqlens_k` is total - 1 in the whole batch, which
is an attention_mask of ones, and the past holds total - length tokens. A call whose mask is of
another length is an error, and so is one with padding (masks.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ...errors import InputError
from .build import Folding
from .graph import Graph, attributes, refuse_attributes, where
from .norms import rms_norm
from .rotary import doubled, heads_first, heads_last, rotated, slice_of

if TYPE_CHECKING:
    import onnx

T = TypeVar("T")
_DONE = {
    "causal": (1,), "k_quant_type": (b"NONE",), "qk_output": (0,), "sliding_window_cache": (0,),
    "smooth_softmax": (0, -1), "v_quant_type": (b"NONE",),
}  # fmt: skip
_INPUTS = (
    "query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length",
    "cos_cache", "sin_cache", "position_ids", "attention_bias", "head_sink", "k_scale", "v_scale",
    "q_norm_weight", "k_norm_weight", "query_seqlens",
)  # fmt: skip
_UNREAD = ("position_ids", "attention_bias", "head_sink", "k_scale", "v_scale", "query_seqlens")


def _attention(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """None where the depth of a head is not known. Raises InputError for what is not done."""
    refuse_attributes(node, _DONE)
    names = {name: x for name, x in zip(_INPUTS, node.input, strict=False) if x}
    if text := _why_not(names, graph):
        raise InputError(f"{where(node.op_type, node.name)}: {text}")
    given = attributes(node)
    heads, shared = int(given["num_heads"]), int(given["kv_num_heads"])
    parts = heads if "key" in names else heads + 2 * shared
    width = width_of(names["query"], graph)
    past = (graph.dims(names.get("past_key", "")) or [None])[-1]
    depth = width // parts if width is not None else past
    if depth is None:
        return None
    layer = _Layer(Folding(graph, node), names, heads, shared, depth)
    return layer.write()


def _why_not(names: Mapping[str, str], graph: Graph) -> str:
    """What these inputs ask for that is not done; "" where all is."""
    for name in _UNREAD:
        if name in names:
            return f"expected no {name}, found {names[name]!r}"
    table = names.get("cos_cache", "")
    made, rows = graph.makers.get(table), (graph.dims(table) or [None])[0]
    if made is not None and made.op_type == "If":  # long rope, of open sizes
        return f"{table!r} depends on how many tokens there are: give known sizes"
    total = graph.constant(names["total_sequence_length"])
    if total is not None and rows is not None and int(total) > rows:
        return f"expected a total of at most {rows}, as {table!r} has rows, found {int(total)}"
    return ""


def width_of(name: str, graph: Graph) -> int | None:
    """Elements along a value's last axis: by its shape, or by what made it, for ONNX infers no
    shape behind these ops; None where that is not known.
    """
    dims, made = graph.dims(name), graph.makers.get(name)
    if dims is not None or made is None:
        return dims[-1] if dims else None
    if made.op_type == "MatMulNBits":
        return int(attributes(made)["N"])
    if made.op_type in ("Add", "MatMul"):  # of a bias, or of a weight
        known = map(graph.dims, reversed(made.input))
        return next((dims[-1] for dims in known if dims), None)
    sizes = graph.constant(made.input[1]) if made.op_type in ("Reshape", "Split") else None
    if sizes is None:
        return None
    found = int(sizes[list(made.output).index(name) if made.op_type == "Split" else -1])
    return found if found > 0 else None


@dataclass(frozen=True)
class _Layer:
    """A node's words: `names` of its inputs by what they are, without those left out."""

    steps: Folding
    names: dict[str, str]
    heads: int
    shared: int  # heads of keys and values
    depth: int

    def write(self) -> list[onnx.NodeProto]:
        steps, given = self.steps, attributes(self.steps.node)
        q, k, v = self._heads()
        if "q_norm_weight" in self.names:
            q, k = self._normal(q, "q_norm_weight"), self._normal(k, "k_norm_weight")
        begin, end = self._places()
        if given.get("do_rotary", 0):
            q, k = self._rotated(q, begin, end), self._rotated(k, begin, end)
        present = [self._present(new, name) for new, name in ((k, "past_key"), (v, "past_value"))]
        keys, values = map(self._repeated, present)
        scores = steps("MatMul", q, steps("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = steps("Mul", scores, self._number(given.get("scale", 0.0) or self.depth**-0.5))
        if cap := given.get("softcap", 0.0):
            scores = steps("Tanh", steps("Div", scores, self._number(cap)))
            scores = steps("Mul", scores, self._number(cap))
        scores = steps("Add", scores, self._mask(begin, end))
        found = steps("MatMul", steps("Softmax", scores, axis=-1), values)
        return steps.instead(heads_last(steps, found), *present)

    def _heads(self) -> list[str]:
        """Queries, keys and values [batch, heads, length, depth]."""
        steps, counts = self.steps, (self.heads, self.shared, self.shared)
        given = [self.names.get(name, "") for name in ("query", "key", "value")]
        if not given[1]:
            ends = [n * self.depth for n in (0, *np.cumsum(counts).tolist())]
            given = [steps.cut(given[0], 2, a, b) for a, b in pairwise(ends)]
        return [
            heads_first(steps, x, count, self.depth) for x, count in zip(given, counts, strict=True)
        ]

    def _normal(self, x: str, weight: str) -> str:
        given = attributes(self.steps.node)
        usual = given.get("qk_norm_epsilon", 1e-6)
        epsilon = given.get(f"{weight[0]}_norm_epsilon", usual)
        return rms_norm(self.steps, x, self.names[weight], [-1], epsilon)

    def _places(self) -> tuple[str, str]:
        """The positions of the first query, and behind the last one; [1] each."""
        return self._once(("places",), self._new_places)

    def _new_places(self) -> tuple[str, str]:
        steps = self.steps
        length = steps("Gather", steps("Shape", self.names["query"]), [1])
        total = steps.cast(self.names["total_sequence_length"], np.int64)
        end = steps("Reshape", total, [1])
        return steps("Sub", end, length), end

    def _rotated(self, x: str, begin: str, end: str) -> str:
        steps, names = self.steps, [self.names[n] for n in ("cos_cache", "sin_cache")]
        is_paired = bool(attributes(steps.node).get("rotary_interleaved", 0))
        columns = (steps.graph.dims(names[0]) or [None])[-1]
        width = 2 * columns if columns is not None else self.depth

        def table(name: str) -> str:
            return doubled(steps, slice_of(steps, name, begin, end), 2, is_paired)

        tables = [self._once((name, is_paired), partial(table, name)) for name in names]
        return rotated(steps, x, tables, width, self.depth, is_paired)

    def _present(self, new: str, name: str) -> str:
        """[batch, kv_heads, total, depth]"""
        past = self.names.get(name, "")
        return self.steps("Concat", past, new, axis=2) if past else new

    def _repeated(self, x: str) -> str:
        """[batch, kv_heads, total, depth] -> [batch, heads, total, depth]"""
        steps, times = self.steps, self.heads // self.shared
        if times == 1:
            return x
        whole = steps("Expand", steps.unsqueeze(x, 2), [1, 1, times, 1, 1])
        return steps("Reshape", whole, [0, self.heads, -1, self.depth])

    def _mask(self, begin: str, end: str) -> str:
        """[length, total]: what is added to scores."""
        window = int(attributes(self.steps.node).get("local_window_size", -1))
        key = ("mask", window, str(self._dtype))
        return self._once(key, partial(self._masked, begin, end, window))

    def _masked(self, begin: str, end: str, window: int) -> str:
        steps, one = self.steps, np.int64(1)
        first, last = (steps("Reshape", x, []) for x in (begin, end))
        queries = steps.unsqueeze(steps("Range", first, last, one), 1)
        keys = steps.unsqueeze(steps("Range", np.int64(0), last, one), 0)
        seen = steps("LessOrEqual", keys, queries)
        if window > 0:
            near = steps("Greater", keys, steps("Sub", queries, np.int64(window)))
            seen = steps("And", seen, near)
        return steps("Where", seen, self._number(0.0), self._number(-np.inf))

    def _once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """What is the same in all layers, written once: the keys and the queries of a call are as
        many in each, unless their sizes say something else.
        """
        graph = self.steps.graph
        length = graph.extent(self.names["query"], 1)
        whole = (*key, self.names["total_sequence_length"], length)
        if whole not in graph.shared:
            graph.shared[whole] = make()
        found: T = graph.shared[whole]
        return found

    @property
    def _dtype(self) -> np.dtype:
        names = (self.names.get(name, "") for name in ("query", "past_key"))
        return next(filter(None, map(self.steps.graph.dtype, names)), np.dtype(np.float32))

    def _number(self, value: float) -> np.ndarray:
        return np.asarray(value, self._dtype)


FORMS = {"com.microsoft.GroupQueryAttention": _attention}
