"""An attribute that a compute does not honour refuses the match, whatever the op."""

import inspect
import logging

import numpy as np
import pytest
from harness import CASES, model, random_args

import selfbyoc
from selfbyoc import op
from selfbyoc.codegen import unread_attributes
from selfbyoc.commands.fuzz.generation import planter
from selfbyoc.errors import ComputeError
from selfbyoc.machine import machine_at_hand
from selfbyoc.ops.vocabulary import KINDS, elementwise_kinds, forms, read_as, read_op
from selfbyoc.tvm import GENERATION, te

MOMENTS = {name: (5,) for name in ("gamma", "beta", "mean", "var")}
NORMED = {"x": (1, 3, 5, 5), "w": (5, 3, 1, 1), **MOMENTS}
RELAY, RELAX = GENERATION == "relay", GENERATION == "relax"


def normed(x, w, gamma, beta, mean, var):
    return op.relu(op.batch_norm(op.conv2d(x, w), gamma, beta, mean, var)[0])


# A program, its inputs, one of its ops, attributes for that which no compute honours
UNHONOURED = [
    (normed, NORMED, "nn.batch_norm", {"scale": False}),
    (normed, NORMED, "nn.batch_norm", {"center": False}),
    (
        lambda x, g, b: op.layer_norm(x, g, b),
        {"x": (3, 7), "g": (7,), "b": (7,)},
        "nn.layer_norm",
        {"scale": False},
    ),
    (
        lambda x, g, b: op.layer_norm(x, g, b),
        {"x": (3, 7), "g": (7,), "b": (7,)},
        "nn.layer_norm",
        {"center": False},
    ),
]
if RELAX:
    UNHONOURED += [(normed, NORMED, "nn.batch_norm", {"training": True})]
else:
    UNHONOURED += [
        (lambda x: op.sum(x, axis=1), {"x": (3, 7, 5)}, "sum", {"exclude": True}),
        (lambda x: op.mean(x, axis=(0, 2)), {"x": (3, 7, 5)}, "mean", {"exclude": True}),
        (lambda x: op.max(x, axis=0, keepdims=True), {"x": (3, 7)}, "max", {"exclude": True}),
    ]


def given(shapes):
    rng = np.random.default_rng(0)
    made = {name: rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}
    return {name: abs(array) + 0.5 if name == "var" else array for name, array in made.items()}


@pytest.mark.parametrize(("program", "shapes", "name", "attrs"), UNHONOURED)
def test_what_no_compute_honours_is_left_to_tvm(program, shapes, name, attrs):
    mod = planter.planted(selfbyoc.emit(program, shapes), name, **attrs)
    everything = [*selfbyoc.BUILTIN, selfbyoc.Composite("all_of_it", program)]
    parted = selfbyoc.partition_for_tefuse(mod, composites=everything)
    told = f"{read_as(name)}[{next(iter(attrs))}="
    assert told in str(selfbyoc.explain(mod, composites=everything))
    assert "all_of_it" not in selfbyoc.report(parted).counts
    nothing = selfbyoc.partition_for_tefuse(mod, composites=[])
    found, alone = (selfbyoc.build(m, "llvm")(**given(shapes)) for m in (parted, nothing))
    for ours, theirs in zip(found, alone, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def attended(dtype):
    def program(x):
        scores = op.batch_matmul(x, x, transpose_b=True)
        return op.batch_matmul(op.softmax(scores), x, out_dtype=dtype)

    return program


@pytest.mark.parametrize(
    ("program", "shape", "composite"),
    [
        (attended("float16"), (2, 3, 4), "attention"),
        (attended("int16"), (2, 3, 4), "attention"),
        (lambda x: op.dense(x, x, out_dtype="int32"), (3, 4), "dense"),
    ],
)
def test_a_product_in_another_dtype_than_the_computes(program, shape, composite):
    """It is refused, and does not become the default schedule's with a warning."""
    parted = selfbyoc.partition_for_tefuse(selfbyoc.emit(program, {"x": shape}))
    assert composite not in selfbyoc.report(parted).counts
    told = [r.reason for r in selfbyoc.report(parted).records if r.composite == composite]
    assert any("has out_dtype=" in reason for reason in told)


def alone(kind):
    """A program of one op, on tensors of its own."""
    names = ["x", "y"][: KINDS[kind].inputs]
    return selfbyoc.emit(ALONE[len(names)](getattr(op, kind)), dict.fromkeys(names, (2, 3)))


ALONE = {1: lambda call: lambda x: call(x), 2: lambda call: lambda x, y: call(x, y)}
OTHERS = {
    "bias_add", "cast", "dequantize", "fixed_point_multiply", "half_weight", "left_shift",
    "quantize", "requantize", "requantize_by_channel", "right_shift", "round", "where",
}  # fmt: skip
SIMPLE = sorted(elementwise_kinds() - OTHERS)
MODULES = [model(*param.values, random_args(param.values[1])) for param in CASES]
MODULES += [alone(kind) for kind in SIMPLE]
CALLS = {name: attrs for mod in MODULES for name, attrs in planter.op_calls(mod)}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_every_attribute_of_an_op_is_known(name):
    """As it is written it is the op; with one more that says something it is another."""
    kind, _ = read_op(name, CALLS[name])
    assert kind == read_as(name)
    if not any(form.by_type for form in forms(KINDS[kind]) if form.name == name):
        strange, _ = read_op(name, {**CALLS[name], "unheard_of": 7})
        assert strange == f"{kind}[unheard_of=7]"
    silent, _ = read_op(name, {**CALLS[name], "unheard_of": ""})
    assert silent == kind


def test_these_are_most_ops():
    seen = {read_as(name) for name in CALLS}
    told = {name for name in KINDS if forms(KINDS[name]) and KINDS[name].is_written}
    assert len(seen & told) > 0.7 * len(told)


def test_a_trial_that_raises_says_nothing_of_others():
    """A compute that fails for one shape is asked again for the next."""

    def rows(x):
        if int(x.shape[0]) == 3:
            raise ValueError("three rows")
        k = te.reduce_axis((0, x.shape[1]), name="k")
        total = te.compute((x.shape[0],), lambda i: te.sum(te.exp(x[i, k]), axis=k), name="total")
        return te.compute(x.shape, lambda i, j: te.exp(x[i, j]) / total[i], name="rows")

    composite = selfbyoc.Composite("rows", lambda x: op.softmax(x), compute=rows)
    for shape, counts in (((3, 9), {"rows": 1}), ((4, 9), {})):
        mod = selfbyoc.emit(lambda x: op.softmax(x, axis=0), {"x": shape})
        parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
        assert selfbyoc.report(parted).counts == counts
        if counts:
            with pytest.raises(ComputeError, match="ValueError: three rows"):
                selfbyoc.build(parted, "llvm")


def rows_along(axis_of):
    """softmax along the last axis only, by a plan that asks for its op by name."""

    def plan(ops, machine):
        return ops.softmax.outputs[0][0]

    def compute(ins, call, shape):
        (x,), k = ins, te.reduce_axis((0, shape[1]), name="k")
        total = te.compute(shape[:1], lambda i: te.sum(te.exp(x[i, k]), axis=k), name="total")
        return te.compute(shape, lambda i, j: te.exp(x[i, j]) / total[i], name="rows")

    kernel = selfbyoc.Kernel(plan, {"softmax": compute}, lambda sch, stages, plan: None)
    return selfbyoc.Composite("rows", axis_of, kernel=kernel)


def test_a_match_is_tried_wherever_it_stands_in_a_model():
    """The second softmax of a model is `softmax_1`, in its own function `softmax`."""

    def program(x):
        return op.softmax(op.exp(op.softmax(x)), axis=0)

    mod, x = selfbyoc.emit(program, {"x": (5, 7)}), given({"x": (5, 7)})["x"]
    parted = selfbyoc.partition_for_tefuse(mod, composites=[rows_along(lambda x: op.softmax(x))])
    assert selfbyoc.report(parted).counts == {"rows": 1}
    rows = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    columns = np.exp(np.exp(rows)) / np.exp(np.exp(rows)).sum(0)
    np.testing.assert_allclose(selfbyoc.build(parted, "llvm")(x)[0], columns, rtol=1e-5)


FIRST = {c.values[0].name: c for c in reversed(CASES)}


@pytest.mark.parametrize(("composite", "case"), FIRST.values())
def test_every_built_in_is_tried_beside_itself(composite, case, monkeypatch, caplog):
    """No plan and no compute needs the names of the first of its kind."""
    program = case.program or composite.pattern

    def twice(**args):
        halves = [{n: a for n, a in args.items() if n.endswith(end)} for end in ("_0", "_1")]
        results = [program(**{n[:-2]: a for n, a in half.items()}) for half in halves]
        return tuple(r for found in results for r in (found if type(found) is tuple else (found,)))

    names = [f"{name}_{n}" for n in (0, 1) for name in inspect.signature(program).parameters]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    twice.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    arrays, types = random_args(case), {n: case.args[n[:-2]] for n in names if n[:-2] in case.args}
    constants = {n: arrays[n[:-2]] for n in names if n[:-2] in case.constants}
    mod = selfbyoc.emit(twice, types, constants)
    counts = [
        selfbyoc.report(selfbyoc.partition_for_tefuse(m, composites=[composite])).counts
        for m in (model(composite, case, arrays), mod)
    ]
    assert counts[0]
    assert counts[1] == {name: 2 * count for name, count in counts[0].items()}
    monkeypatch.setattr(unread_attributes, "_said", lambda call: iter(call.attrs))
    unread_attributes._seen.cache_clear()
    monkeypatch.setattr(unread_attributes, "_seen", lambda *form: set())
    with caplog.at_level(logging.DEBUG, "selfbyoc.codegen.unread_attributes"):
        selfbyoc.partition_for_tefuse(mod, composites=[composite])
    assert not [record.getMessage() for record in caplog.records if "no trial" in record.msg]


@pytest.mark.parametrize(("cpu", "counts"), [("haswell", {"columns": 1}), ("nehalem", {})])
def test_the_trial_is_for_the_target(cpu, counts):
    """What a compute looks at may depend on the machine that it is stacked for."""

    def softmax(ins, call):
        (x,), rows = ins, te.reduce_axis((0, ins[0].shape[0]), name="rows")
        if machine_at_hand().vector_bytes == 32:
            assert call.attrs["axis"] == 0
        total = te.compute((x.shape[1],), lambda j: te.sum(te.exp(x[rows, j]), axis=rows), "total")
        return te.compute(x.shape, lambda i, j: te.exp(x[i, j]) / total[j], name="columns")

    def pattern(x):
        return op.softmax(x, axis=0)

    composite = selfbyoc.Composite("columns", lambda x: op.softmax(x), compute={"softmax": softmax})
    mod = selfbyoc.emit(pattern, {"x": (4, 9)})
    for target in (f"llvm -mcpu={cpu}", f"llvm -mcpu={cpu} -num-cores=3"):
        parted = selfbyoc.partition_for_tefuse(mod, target=target, composites=[composite])
        assert selfbyoc.report(parted).counts == counts
    told = str(selfbyoc.explain(mod, target=f"llvm -mcpu={cpu}", composites=[composite]))
    assert ("which columns does not look at" in told) == (not counts)
