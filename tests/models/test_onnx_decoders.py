"""Decoders as ONNX Runtime GenAI's builder writes them, against ONNX Runtime on the same file."""

import numpy as np
import pytest
from decoder_models import F32, MOST, Decoder
from few_bits_models import model_of, packed
from onnx import TensorProto, helper, numpy_helper

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.models.onnx.folding import folded
from selfbyoc.models.onnx.forms import readable
from selfbyoc.runtime.tolerance import tolerance
from selfbyoc.tvm import GENERATION

runtime = pytest.importorskip("onnxruntime")
IS_RELAX = GENERATION == "relax"
relax_only = pytest.mark.skipif(not IS_RELAX, reason="Relay's sizes have no names")
# Prompts, tokens and more tokens: how many, and over how long a past.
CALLS = ((5, 0), (1, 5), (3, 6), (1, 0), (2, 1))


def computed(model, inputs):
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    return runtime.InferenceSession(model.SerializeToString(), options).run(None, inputs)


def check(found, wanted, terms=600):
    """`terms`: of the sums behind one another in a small decoder."""
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        atol = tolerance("float32", terms) * max(np.abs(other).max(), 1)
        np.testing.assert_allclose(np.asarray(one), other, rtol=0, atol=atol)


def check_forms(model, calls):
    """The same numbers by ONNX Runtime of what the forms write, which has ONNX's own ops alone."""
    plain = readable(folded(model), "the model")
    assert not [n.op_type for n in plain.graph.node if n.domain or "Simplified" in n.op_type]
    for inputs in calls:
        check(computed(plain, inputs), computed(model, inputs))


VARIANTS = {
    "llama": {}, "of three matrices": {"is_packed": False}, "all heads": {"shared": 4},
    "one head of keys": {"shared": 1}, "window": {"local_window_size": 4},
    "window of one": {"local_window_size": 1}, "softcap": {"softcap": 2.0, "scale": 0.4},
    "no rotary": {"do_rotary": 0}, "pairs": {"rotary_interleaved": 1},
    "half of a head": {"depth": 32, "rotary": 16},
    "norms of heads": {"is_packed": False, "head_norm": "apart", "layers": 2},
    "layers": {"layers": 9}, "layer norm": {"norm": "", "is_packed": False},
}  # fmt: skip


@pytest.mark.skipif(not IS_RELAX, reason="axes are attributes for Relay's frontend, of no opset")
@pytest.mark.parametrize("name", VARIANTS)
def test_forms_are_what_onnx_runtime_computes(name):
    decoder = Decoder(**VARIANTS[name])
    check_forms(decoder.model(), [decoder.inputs(n, past, n) for n, past in CALLS])


@relax_only
def test_norms_of_heads_within():
    """No kernel of ONNX Runtime's for CPUs has them: it is asked for those apart."""
    words = {"is_packed": False, "qk_norm_epsilon": 1e-5}
    within, apart = Decoder(head_norm="within", **words), Decoder(head_norm="apart", **words)
    plain, inputs = readable(folded(within.model()), "the model"), within.inputs(3, 4)
    check(computed(plain, inputs), computed(apart.model(), inputs))


def test_a_total_beyond_the_tables_is_refused():
    decoder = Decoder()
    shapes = {name: array.shape for name, array in decoder.inputs(1, MOST).items()}
    with pytest.raises(InputError, match=f"at most {MOST}.*found {MOST + 1}"):
        selfbyoc.from_onnx(decoder.model(), shapes=shapes)


@relax_only
def test_a_batch_of_sequences_of_one_length():
    decoder = Decoder()
    check_forms(decoder.model(), [decoder.inputs(4, 0, batch=3), decoder.inputs(1, 4, batch=3)])


def test_layers_share_their_masks_and_tables():
    plain = readable(folded(Decoder(layers=3).model()), "the model")
    kinds = [node.op_type for node in plain.graph.node]
    # Keys, values and the tables' rows apart: positions of queries and of keys, once.
    assert (kinds.count("Range"), kinds.count("Where")) == (2, 1)


KNOWN = {
    "llama": {"layers": 2},
    "another": {"layers": 2, "is_packed": False, "shared": 1, "local_window_size": 2,
                "rotary_interleaved": 1},
    "softcap": {"layers": 2, "softcap": 2.0, "scale": 0.4},
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_of_known_sizes(name):
    """On both generations, as one kernel of attention."""
    decoder = Decoder(**KNOWN[name])
    model, inputs = decoder.model(), decoder.inputs(3, 5)
    shapes = {name: array.shape for name, array in inputs.items()}
    library = selfbyoc.build(selfbyoc.from_onnx(model, shapes=shapes))
    counts = library.report.counts
    assert counts.get("attention", 0) == 2
    assert counts.get("rms_norm", 0) + counts.get("rms_norm_dense", 0) == 5
    check(library(**inputs), computed(model, inputs))


MASKS = ([1] * 7 + [0], [0] + [1] * 7, [2, 0] + [1] * 6)


def test_a_mask_with_padding_is_an_error(tmp_path):
    """ONNX Runtime counts its ones, and gives other numbers for it."""
    decoder = Decoder()
    model, inputs = decoder.model(), decoder.inputs(3, 5)
    shapes = {name: array.shape for name, array in inputs.items()}
    library = selfbyoc.build(selfbyoc.from_onnx(model, shapes=shapes))
    library.export_library(tmp_path / "decoder.so")
    for own in (library, selfbyoc.load(tmp_path / "decoder.so")):
        check(own(**inputs), computed(model, inputs))
        for mask in MASKS:
            told = f"'attention_mask': expected 1 everywhere, found {2 if 2 in mask else 0} at"
            with pytest.raises(InputError, match=told):
                own(**inputs | {"attention_mask": np.asarray([mask])})


def test_lengths_that_are_no_sum_of_a_mask_are_refused():
    model = Decoder().model()
    node = next(n for n in model.graph.node if n.op_type == "Sub")
    node.input[1] = "two"
    model.graph.initializer.append(numpy_helper.from_array(np.asarray([2]), "two"))
    with pytest.raises(InputError, match="GroupQueryAttention 'attention0': expected seqlens_k"):
        selfbyoc.from_onnx(model)


@relax_only
def test_of_open_sizes():
    """Of a prompt over no past, too; and what does not fit is an error."""
    decoder = Decoder()
    model = decoder.model()
    mod = selfbyoc.from_onnx(model, sizes={"batch_size": 1})
    library = selfbyoc.build(mod, composites=())
    # The tables' rows: as many as there are from one place to another, or to the end.
    assert all("strided_slice" in name for name in library.unscheduled)
    for length, past in CALLS:
        inputs = decoder.inputs(length, past, length)
        check(library(**inputs), computed(model, inputs))
    inputs = decoder.inputs(2, 3)
    for mask in (np.ones((1, 4), np.int64), np.eye(1, 5, dtype=np.int64)):
        with pytest.raises(InputError, match="attention_mask"):
            library(**inputs | {"attention_mask": mask})
    with pytest.raises(InputError):  # beyond the tables
        library(**decoder.inputs(2, MOST - 1))


@relax_only
def test_sizes_within_the_tables_need_no_limit():
    sizes = {"batch_size": 1, "sequence_length": (1, 8), "past_sequence_length": (None, MOST - 8)}
    assert "T.min" not in selfbyoc.from_onnx(Decoder().model(), sizes=sizes).script()
    sizes["sequence_length"] = (1, 9)
    assert "T.min" in selfbyoc.from_onnx(Decoder().model(), sizes=sizes).script()


def test_rotary_embedding():
    rng, partly = np.random.default_rng(0), {"num_heads": 4, "rotary_embedding_dim": 8}
    shapes = {(2, 5, 4 * 8): {}, (2, 3, 5, 8): {"interleaved": 1}, (2, 5, 4 * 12): partly}
    for shape, attrs in shapes.items():
        x = rng.standard_normal(shape).astype(F32)
        values = {n: rng.standard_normal((MOST, 4)).astype(F32) for n in ("cos", "sin")}
        names = ["x", "places", "cos", "sin"]
        node = helper.make_node("RotaryEmbedding", names, ["y"], domain="com.microsoft", **attrs)
        places = rng.integers(0, MOST, (2, 5))
        check_forms(model_of([node], {"x": x, "places": places}, shape, values),
                    [{"x": x, "places": places}])  # fmt: skip


def test_quick_gelu():
    x = np.random.default_rng(1).standard_normal((3, 7)).astype(F32)
    node = helper.make_node("QuickGelu", ["x"], ["y"], domain="com.microsoft", alpha=1.3)
    check_forms(model_of([node], {"x": x}, x.shape, {}), [{"x": x}])


@pytest.mark.parametrize(("bits", "has_zeros"), [(4, False), (4, True), (8, True), (8, False)])
def test_rows_of_a_table_of_few_bits(bits, has_zeros):
    rng, rows, depth, group = np.random.default_rng(2), 11, 96, 32
    levels = rng.integers(0, 1 << bits, (rows, depth), "uint8")
    values = {"t": packed(levels, bits).reshape(rows, 3, -1), "to": np.asarray([rows, -1]),
              "s": rng.uniform(0.1, 1, (rows, 3)).astype(F32)}  # fmt: skip
    names = ["flat", "at", "s"]
    if has_zeros:
        zeros = rng.integers(0, 1 << bits, (rows, 3 if bits == 8 else 4), "uint8")
        values["z"], names = packed(zeros, bits), [*names, "z"]
    nodes = [
        helper.make_node("Reshape", ["t", "to"], ["flat"]),
        helper.make_node("GatherBlockQuantized", names, ["y"], domain="com.microsoft", bits=bits,
                         block_size=group, gather_axis=0, quantize_axis=1),
    ]  # fmt: skip
    at = rng.integers(0, rows, (2, 5))
    check_forms(model_of(nodes, {"at": at}, (2, 5, depth), values), [{"at": at}])


@relax_only
@pytest.mark.parametrize("softcap", [0.0, 2.0])
def test_a_decoder_with_caches_in_place(softcap):
    """Fed in pieces, the logits of all at once."""
    small = Decoder(layers=2, softcap=softcap)
    model = small.model()
    mod = selfbyoc.from_onnx(model, sizes={"batch_size": 1, "sequence_length": (1, 8)})
    library = selfbyoc.build(selfbyoc.decoding(mod, bound=MOST))
    assert library.report.counts["attention_of_heads"] == 2
    decoder, inputs = selfbyoc.Decoder(library), small.inputs(20, 0)
    assert (decoder.bound, decoder.piece) == (MOST, 8)
    (wanted, *_), end = computed(model, inputs), 0
    for count in (5, 1, 1, 9, 4):
        found = decoder.feed(inputs["input_ids"][0, end : end + count])
        end += count
        check([found], [wanted[0, end - 1]])


REFUSED = {
    "sliding_window_cache": ({"sliding_window_cache": 1, "local_window_size": 4}, 0),
    "smooth_softmax": ({"smooth_softmax": 1}, 0),
    "position_ids": ({}, 9), "attention_bias": ({}, 10), "head_sink": ({}, 11),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(name):
    attrs, place = REFUSED[name]
    model = Decoder(**attrs).model()
    if place:
        node = next(n for n in model.graph.node if n.op_type == "GroupQueryAttention")
        node.input[place] = {9: "input_ids", 10: "bias", 11: "sink"}[place]
        sizes = {10: [1, 1, "sequence_length", "total_sequence_length"], 11: [4]}
        if place in sizes:
            value = helper.make_tensor_value_info
            model.graph.input.append(value(node.input[place], TensorProto.FLOAT, sizes[place]))
    with pytest.raises(InputError, match=f"GroupQueryAttention.*{name}"):
        selfbyoc.from_onnx(model)


def test_a_sum_of_squares_that_is_read_is_refused():
    model = Decoder().model()
    node = next(n for n in model.graph.node if n.op_type.startswith("Skip"))
    node.output[2] = "spread"
    model.graph.output.append(helper.make_tensor_value_info("spread", TensorProto.FLOAT, None))
    with pytest.raises(InputError, match=r"spread.*is used"):
        readable(model, "the model")


@relax_only
def test_nobody_is_told_that_onnx_does_not_know_these(recwarn):
    selfbyoc.from_onnx(Decoder().model(), sizes={"batch_size": 1})
    assert not [w for w in recwarn if "No Op registered" in str(w.message)]
