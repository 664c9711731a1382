"""Pattern kinds against TVM's own: every op of the vocabulary, on the generation at hand."""

import pytest

from selfbyoc import op
from selfbyoc._tvm import GENERATION, tvm
from selfbyoc.codegen.pattern_kind import NAMES, PATTERN_KINDS, name_of, pattern_kind
from selfbyoc.errors import UnsupportedOp
from selfbyoc.ir.emit import emit
from selfbyoc.partition.pattern import VOCABULARY

X = (2, 4, 6, 6)
SHAPES = {
    "batch_matmul": [(2, 4, 8), (2, 8, 6)],
    "batch_norm": [X, (4,), (4,), (4,), (4,)],
    "bias_add": [X, (4,)],
    "broadcast_to": [(1, 4, 1, 1)],
    "concatenate": [X, X],
    "conv2d": [X, (8, 4, 3, 3)],
    "dense": [(4, 8), (6, 8)],
    "layer_norm": [(4, 8), (8,), (8,)],
}
ATTRS = {
    "batch_matmul": {"transpose_b": False},
    "broadcast_to": {"shape": X},
    "cast": {"dtype": "int32"},
    "max": {"axis": (1,)},
    "mean": {"axis": (1,)},
    "requantize": {"input_scale": 0.5, "output_scale": 1.0},
    "reshape": {"shape": (8, 36)},
    "split": {"indices_or_sections": 2, "axis": 1},
    "sum": {"axis": (1,)},
    "transpose": {"axes": (0, 2, 3, 1)},
}
# An op that this generation writes as several of its own.
MADE_OF = {"relay": {"gelu", "silu"}, "relax": set()}[GENERATION]
# Known to one generation only.
MISSING = {"relay": set(), "relax": {"lrn", "requantize"}}[GENERATION]
# Justified: Relay registers no kind for layer_norm, which it rewrites before anything is fused.
UNREGISTERED = {"relay": {"layer_norm"}, "relax": set()}[GENERATION]


def model(kind):
    count = VOCABULARY[kind] or 2
    shapes = SHAPES.get(kind, [X] * count)
    dtype = "int32" if kind in ("right_shift", "requantize") else "float32"
    names = [f"a{i}" for i in range(len(shapes))]
    several = kind in ("split", "batch_norm")
    inputs = f"[{', '.join(names)}]" if kind == "concatenate" else ", ".join(names)
    text = f"lambda {', '.join(names)}: op.{kind}({inputs}, **attrs){'[0]' if several else ''}"
    program = eval(text, {"op": op, "attrs": ATTRS.get(kind, {})})
    return emit(program, {n: (s, dtype) for n, s in zip(names, shapes, strict=True)})


def tvms_kind(kind):
    """What TVM itself says of the op: the one of the module that it is about."""
    mod = model(kind)
    if GENERATION == "relax":
        from tvm import relax

        mod = relax.transform.AnnotateTIROpPattern()(relax.transform.LegalizeOps()(mod))
        found = [f.attrs["op_pattern"] for v, f in mod.functions.items() if v.name_hint != "main"]
        return name_of(max(map(int, found)) if kind == "dense" else int(found[-1]))
    from tvm import relay

    calls = []
    relay.analysis.post_order_visit(
        mod["main"], lambda e: calls.append(e) if isinstance(e, relay.Call) else None
    )
    return name_of(int(calls[-1].op.get_attr("TOpPattern")))


@pytest.mark.parametrize("kind", sorted(VOCABULARY))
def test_it_agrees_with_tvm(kind):
    if kind in MISSING:
        with pytest.raises(UnsupportedOp):
            model(kind)
    elif kind in UNREGISTERED:
        assert tvm.ir.Op.get(f"nn.{kind}").get_attr("TOpPattern") is None
    elif kind in MADE_OF:
        assert pattern_kind(kind) == "elemwise"
    else:
        assert pattern_kind(kind) == tvms_kind(kind)


def test_every_op_has_one():
    assert set(VOCABULARY) <= set(PATTERN_KINDS)
    kinds = {k for v in PATTERN_KINDS.values() for k in ([v] if isinstance(v, str) else v)}
    assert kinds <= set(NAMES)
    assert pattern_kind("nn.something_else") == "opaque"


def test_a_broadcast_on_both_sides():
    """Relax calls an op elementwise if one operand at least is read in place; Relay never asks."""
    assert pattern_kind("add", in_place=False) == "broadcast"
    assert pattern_kind("add") == ("broadcast" if GENERATION == "relay" else "elemwise")
