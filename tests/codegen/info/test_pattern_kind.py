"""Pattern kinds against TVM's own: every op of the vocabulary, on the generation at hand."""

import pytest
from vocabulary import MISSING, model

from selfbyoc.codegen.info.pattern_kind import NAMES, name_of, pattern_kind
from selfbyoc.errors import UnsupportedOp
from selfbyoc.ops.vocabulary import KINDS, written
from selfbyoc.tvm import GENERATION, tvm

# An op that this generation writes as several of its own.
MADE_OF = {
    "relay": {
        "gelu": "elemwise", "gelu_tanh": "elemwise", "silu": "elemwise",
        "rms_norm": "out_elemwise_fusable", "hard_swish": "elemwise",
    },
    "relax": {"hard_swish": "elemwise"},
}[GENERATION]  # fmt: skip
# Justified: Relay registers no kind for layer_norm, which it rewrites before anything is fused.
UNREGISTERED = {"relay": {"layer_norm"}, "relax": set()}[GENERATION]


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


@pytest.mark.parametrize("kind", written())
def test_it_agrees_with_tvm(kind):
    if kind in MISSING:
        with pytest.raises(UnsupportedOp):
            model(kind)
    elif kind in UNREGISTERED:
        assert tvm.ir.Op.get(f"nn.{kind}").get_attr("TOpPattern") is None
    elif kind in MADE_OF:
        assert pattern_kind(kind) == MADE_OF[kind]
    else:
        assert pattern_kind(kind) == tvms_kind(kind)


def test_every_op_has_one():
    named = [kind.fuses for kind in KINDS.values()]
    kinds = {k for v in named for k in ([v] if isinstance(v, str) else v)}
    assert kinds <= set(NAMES)
    assert pattern_kind("nn.something_else") == "opaque"


def test_a_broadcast_on_both_sides():
    """Relax calls an op elementwise if one operand at least is read in place; Relay never asks."""
    assert pattern_kind("add", in_place=False) == "broadcast"
    assert pattern_kind("add") == ("broadcast" if GENERATION == "relay" else "elemwise")
