"""Attention: masks that hide everything, large scores, and all forms in which it is written."""

import warnings

import numpy as np
import pytest
from harness import assert_close, needs_code, run_case

import selfbyoc
from selfbyoc import Case, Composite, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.tolerance import tolerance
from selfbyoc.schedules.composites.attention import attention
from selfbyoc.tvm import GENERATION, make_target, module_source, register_func
from selfbyoc.tvm.build import build_module

SHAPES = {"q": (2, 37, 24), "k": (2, 51, 24), "v": (2, 51, 40)}


def arrays(**shapes):
    rng = np.random.default_rng(11)
    return {n: rng.standard_normal(s).astype("float32") for n, s in {**SHAPES, **shapes}.items()}


def reference(q, k, v, mask=0.0, scale=1.0):
    """softmax(scale q k^T + mask) v in float64, k and v as [..., keys, columns]."""
    wide = [a.astype("float64") for a in (q, k, v)]
    scores = wide[0] @ wide[1].swapaxes(-1, -2) * scale + mask
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ wide[2]


def run(program, data):
    """-> the result; the composite must have been used."""
    types = {name: (a.shape, str(a.dtype)) for name, a in data.items()}
    parted = selfbyoc.partition_for_tefuse(emit(program, types), composites=[attention])
    assert selfbyoc.report(parted).counts == {"attention": 1}
    return selfbyoc.build(parted)(**data)[0]


def masked(q, k, v, mask):
    return op.batch_matmul(op.softmax(op.add(op.batch_matmul(q, k, transpose_b=True), mask)), v)


def close(found, wanted, terms=24 + 51 + 51):
    bound = tolerance("float32", terms) * np.nanmax(np.abs(wanted))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)


@pytest.mark.parametrize("hidden", [-np.inf, -1e9, np.finfo("float32").min])
def test_hidden_keys_have_no_weight(hidden):
    """Values of hidden keys are huge: a weight of 1e-38 would show."""
    data = arrays(mask=(2, 37, 51))
    data["mask"] = np.where(data["mask"] > 1, np.float32(hidden), data["mask"]).astype("float32")
    data["mask"][:, :, 40:] = hidden
    data["v"][:, 40:] = 1e30
    close(run(masked, data), reference(**data))


def test_a_causal_mask():
    data = arrays(k=(2, 37, 24), v=(2, 37, 40))
    data["mask"] = np.triu(np.full((1, 37, 37), -np.inf, "float32"), 1)
    close(run(masked, data), reference(**data))


def test_a_row_that_is_hidden_altogether():
    """softmax of nothing but -inf is NaN, and no other row is touched; of scores all lowered by
    1e9, it is what their last digits leave.
    """
    data = arrays(mask=(2, 37, 51))
    data["mask"][0, 5] = -np.inf
    found, wanted = run(masked, data), reference(**data)
    assert np.isnan(found[0, 5]).all()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    close(np.nan_to_num(found), np.nan_to_num(wanted))
    data["mask"][0, 5] = -1e9
    found = run(masked, data)
    assert np.isfinite(found).all()
    # float32 has a distance of 64 between numbers at 1e9, so all keys weigh the same.
    close(found[0, 5], data["v"][0].astype("float64").mean(0))


@pytest.mark.parametrize("size", [1e-20, 30.0, 1e3, 1e15])
def test_scores_of_any_size(size):
    """Beyond a difference of 87 one key takes it all; nothing overflows."""
    data = arrays()
    # Whole multiples of a power of two: scores that float32 holds exactly. The last digits of large
    # ones alone would move the weights.
    data["q"] = np.round(data["q"]) * np.float32(2.0 ** np.floor(np.log2(size)))
    data["k"] = np.round(data["k"])

    def plain(q, k, v):
        return op.batch_matmul(op.softmax(op.batch_matmul(q, k, transpose_b=True)), v)

    close(run(plain, data), reference(**data))


def test_a_nan_stays_in_its_row():
    data = arrays()
    data["q"][1, 3, 2] = np.nan

    def plain(q, k, v):
        return op.batch_matmul(op.softmax(op.batch_matmul(q, k, transpose_b=True)), v)

    found = run(plain, data)
    assert np.isnan(found[1, 3]).all()
    assert np.isnan(found).sum() == found.shape[-1]


FORMS = {
    "scores times": lambda s: lambda q, k, v: op.multiply(op.batch_matmul(q, k), s),
    "times scores": lambda s: lambda q, k, v: op.multiply(s, op.batch_matmul(q, k)),
    "scores over": lambda s: lambda q, k, v: op.divide(op.batch_matmul(q, k), 1 / s),
    "queries times": lambda s: lambda q, k, v: op.batch_matmul(op.multiply(q, s), k),
    "times queries": lambda s: lambda q, k, v: op.batch_matmul(op.multiply(s, q), k),
    "queries over": lambda s: lambda q, k, v: op.batch_matmul(op.divide(q, 1 / s), k),
}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_every_place_of_the_scale(form):
    data = arrays(k=(2, 24, 51), v=(2, 40, 51))
    scores = FORMS[form](0.2)

    def program(q, k, v):
        return op.batch_matmul(op.softmax(scores(q, k, v), axis=-1), v, transpose_b=True)

    turned = {"q": data["q"], "k": data["k"].swapaxes(1, 2), "v": data["v"].swapaxes(1, 2)}
    close(run(program, data), reference(**turned, scale=0.2))


def test_transposes_before_the_products():
    data = arrays(k=(2, 24, 51), v=(2, 40, 51), q=(2, 24, 37))
    turn = {"axes": (0, 2, 1)}

    def program(q, k, v):
        scores = op.batch_matmul(op.transpose(q, **turn), k)
        return op.batch_matmul(op.softmax(scores), op.transpose(v, **turn))

    found = run(program, data)
    close(found, reference(*(data[n].swapaxes(1, 2) for n in "qkv")))


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's batch_matmul has three axes")
@pytest.mark.parametrize(
    "mask", [(51,), (1, 1, 1, 51), (1, 3, 1, 1), (2, 1, 37, 51), (37, 51), (2, 3, 1, 51)]
)
def test_heads_and_broadcast_masks(mask):
    shapes = {name: (2, 3, *shape[1:]) for name, shape in SHAPES.items()}
    data = arrays(**shapes, mask=mask)
    close(run(masked, data), reference(**data))


@pytest.mark.parametrize("mask", [(1, 1, 51), (2, 1, 51), (1, 1, 1), (2, 37, 51)])
def test_masks_that_are_computed(mask):
    """By itself, the function that is cut out has an argument of the shape of a bias."""

    def program(q, k, v, mask):
        return masked(q, k, v, op.multiply(mask, -3.0))

    data = arrays(mask=mask)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(run(program, data), reference(**{**data, "mask": data["mask"] * -3.0}))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda s, v, gate: op.batch_matmul(op.softmax(s, axis=1), v), "not over the keys"),
        (lambda s, v, gate: op.batch_matmul(op.softmax(s), v, transpose_a=True), "are transposed"),
        (
            lambda s, v, gate: op.batch_matmul(op.softmax(op.multiply(s, gate)), v),
            "more than one number",
        ),
    ],
)
def test_what_is_refused(program, reason):
    data = arrays(k=(2, 37, 24), v=(2, 37, 40), gate=(2, 37, 37))

    def whole(q, k, v, gate):
        return program(op.batch_matmul(q, k, transpose_b=True), v, gate)

    types = {name: (a.shape, "float32") for name, a in data.items()}
    report = selfbyoc.report(
        selfbyoc.partition_for_tefuse(emit(whole, types), composites=[attention])
    )
    assert report.counts == {}
    reasons = [r.reason for r in report.records]
    assert any(reason in r for r in reasons), reasons


@pytest.mark.parametrize("queries", [1, 2, 4, 5])
@pytest.mark.parametrize("depth", [7, 32])
def test_few_queries(queries, depth):
    data = arrays(q=(2, queries, depth), k=(2, 51, depth), mask=(2, 1, 51))
    data["mask"][:, :, 40:] = -np.inf
    data["v"][:, 40:] = 1e30
    close(run(masked, data), reference(**data))


HEADS = {"axes": (0, 2, 1, 3)}


def of_heads(q, k, v, mask):
    q, v = op.transpose(q, **HEADS), op.transpose(v, **HEADS)
    scores = op.add(op.batch_matmul(q, op.transpose(k, axes=(0, 2, 3, 1))), mask)
    return op.transpose(op.batch_matmul(op.softmax(scores), v), **HEADS)


def heads(batch=2, queries=37, keys=51):
    shapes = {"q": (batch, queries, 3, 16), "k": (batch, keys, 3, 16), "v": (batch, keys, 3, 32)}
    return arrays(**shapes, mask=(batch, 1, 1, keys))


def counts(program, data):
    types = {name: (a.shape, "float32") for name, a in data.items()}
    parted = selfbyoc.partition_for_tefuse(emit(program, types))
    return parted, selfbyoc.report(parted).counts


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's batch_matmul has three axes")
@pytest.mark.parametrize("queries", [2, 37])
def test_heads_are_read_in_place(queries):
    data = heads(queries=queries)
    parted, found = counts(of_heads, data)
    assert found == {"attention_of_heads": 1}
    turned = {n: a.transpose(0, 2, 1, 3) for n, a in data.items() if n != "mask"}
    wanted = reference(**turned, mask=data["mask"]).transpose(0, 2, 1, 3)
    close(selfbyoc.build(parted)(**data)[0], wanted)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's batch_matmul has three axes")
@pytest.mark.parametrize("batch", [1, 2])
def test_masks_of_heads_that_are_computed(batch):
    def program(q, k, v, mask):
        return of_heads(q, op.multiply(k, 0.5), v, op.multiply(mask, -3.0))

    data = heads(batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parted, found = counts(program, data)
    assert found == {"attention_of_heads": 1}
    turned = {n: a.transpose(0, 2, 1, 3) for n, a in data.items() if n != "mask"}
    wanted = reference(**turned, mask=data["mask"] * -3.0, scale=0.5).transpose(0, 2, 1, 3)
    close(selfbyoc.build(parted)(**data)[0], wanted)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's batch_matmul has three axes")
def test_heads_that_are_used_elsewhere_are_transposed_outside():
    def program(q, k, v, mask):
        turned = op.transpose(v, **HEADS)
        scores = op.batch_matmul(op.transpose(q, **HEADS), op.transpose(k, axes=(0, 2, 3, 1)))
        done = op.batch_matmul(op.softmax(op.add(scores, mask)), turned)
        return op.transpose(done, **HEADS), op.exp(turned)

    data = heads()
    parted, found = counts(program, data)
    assert found == {"attention": 1}
    turned = {n: a.transpose(0, 2, 1, 3) for n, a in data.items() if n != "mask"}
    wanted = reference(**turned, mask=data["mask"]).transpose(0, 2, 1, 3)
    close(selfbyoc.build(parted)(**data)[0], wanted)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's batch_matmul has three axes")
def test_keys_that_are_not_multiplied_along_their_depth():
    def program(q, k, v):
        q, k, v = (op.transpose(x, **HEADS) for x in (q, k, v))
        return op.transpose(op.batch_matmul(op.softmax(op.batch_matmul(q, k)), v), **HEADS)

    data = {name: a[:, :16] for name, a in heads(queries=16).items() if name != "mask"}
    parted, found = counts(program, data)
    assert found == {"attention": 1}
    q, k, v = (data[name].transpose(0, 2, 1, 3) for name in "qkv")
    wanted = reference(q, k.swapaxes(-1, -2), v).transpose(0, 2, 1, 3)
    close(selfbyoc.build(parted)(**data)[0], wanted)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("shape", "by"),
    [
        ((), "divide"),
        ((24,), "multiply"),
        ((37, 1), "divide"),
        ((2, 1, 1), "multiply"),
        ((2, 37, 24), "divide"),
        ((1, 2, 37, 24), "multiply"),
    ],
)
def test_queries_scaled_by_a_tensor(shape, by, turned):
    """Before they are transposed: the scale lies as they do."""
    if len(shape) > 3 and GENERATION == "relay":
        pytest.skip("Relay has no matmul that broadcasts")
    data = arrays()
    rng = np.random.default_rng(5)
    scale = (1 + rng.random(shape)).astype("float32")
    factor = np.broadcast_to(scale, np.broadcast_shapes(shape, SHAPES["q"]))
    queries = data["q"] * factor if by == "multiply" else data["q"] / factor
    wanted = reference(queries, data["k"], data["v"])
    data["scale"] = scale
    if turned:
        data["q"] = data["q"].swapaxes(-1, -2).copy()
        data["scale"] = scale.swapaxes(-1, -2).copy() if len(shape) > 1 else scale
    if turned and shape == (24,):  # of one axis: that is the last one, the queries' now
        data["scale"] = scale[:, None].copy()
    if len(shape) > 3:
        data |= {name: data[name][None] for name in ("k", "v")}

    def program(q, k, v, scale):
        scaled = getattr(op, by)(q, scale)
        scores = op.batch_matmul(scaled, k, transpose_a=turned, transpose_b=True)
        return op.batch_matmul(op.softmax(scores), v)

    close(run(program, data), wanted)


@pytest.mark.parametrize("turned", [False, True])
def test_queries_scaled_along_one_axis(turned):
    data = arrays()
    q = data["q"].swapaxes(-1, -2).copy() if turned else data["q"]
    scale = np.linspace(0.5, 2, q.shape[-1], dtype="float32")
    scaled = (q * scale).swapaxes(-1, -2) if turned else q * scale

    def program(q, k, v, scale):
        scores = op.batch_matmul(op.multiply(q, scale), k, transpose_a=turned, transpose_b=True)
        return op.batch_matmul(op.softmax(scores), v)

    wanted = reference(scaled, data["k"], data["v"])
    close(run(program, {**data, "q": q, "scale": scale}), wanted)


# ---- A61: "a small-size batchedmatmul in the middle of 2 sequences of e-wise and reduction op"


def between(x, y):
    power = op.exp(x)
    share = op.divide(power, op.sum(power, axis=-1, keepdims=True))
    scores = op.tanh(op.batch_matmul(share, y, transpose_b=True))
    return op.divide(scores, op.sum(op.abs(scores), axis=-1, keepdims=True))


SMALL = Case(between, x=(6, 11, 17), y=(6, 13, 17))
MIDDLE = Composite("middle", between)


def test_a_product_in_the_middle_is_one_kernel():
    run = run_case(MIDDLE, SMALL)
    assert run.counts == {"middle": 1}
    assert_close(run)
    assert selfbyoc.report(selfbyoc.partition_for_tefuse(run.mod, composites=[MIDDLE])).left == {}


@needs_code("cuda")
def test_a_product_in_the_middle_for_cuda():
    """All of it in one function of the device; schedules/gpu/test_chains.py has more sizes."""
    mod = selfbyoc.emit(between, SMALL.args)
    parted = selfbyoc.partition_for_tefuse(mod, composites=[MIDDLE])
    target = make_target({"kind": "cuda", "arch": "sm_80"})
    (kernel,) = kernels(parted)
    _, scheduled = kernel.schedule(target)
    (nest,) = selfbyoc.melting(parted, target).kernels
    for stage in nest.nest.stages:
        assert any("block" in str(loop.kind) for loop in nest.nest.loops_of(stage.name)), stage
    register_func("tvm_callback_cuda_compile", lambda code, target=None: code, override=True)
    built = build_module(scheduled.mod, target)
    (device,) = built.imports if GENERATION == "relax" else built.imported_modules
    source = module_source(device)
    for part in ("blockIdx.x", "threadIdx.x", "__shared__"):
        assert part in source
    bodies = [text for text in source.split("__global__")[1:] if "{" in text.partition(";")[0]]
    assert len(bodies) == 1
