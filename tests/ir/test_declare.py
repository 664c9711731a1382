"""Ops that a user declares: in patterns, cases and models, right on both generations."""

import numpy as np
import pytest
from harness import assert_close
from harness import run_case as run

import selfbyoc
from selfbyoc import Case, Composite, declare, op
from selfbyoc.errors import CompositeError, ComputeError, OpError
from selfbyoc.ir.generation import writer
from selfbyoc.ops import vocabulary
from selfbyoc.ops.vocabulary import KINDS
from selfbyoc.tvm import GENERATION, te, tir, tvm

SHAPE = (2, 3, 5, 7)
RELU = "nn.relu"
# Ops that one TVM has not, and that are not written as several there.
ONE_TVM_ONLY = {"relax": {"fixed_point_multiply", "lrn", "requantize"}, "relay": set()}


pytestmark = pytest.mark.usefixtures("vocabulary_as_before")


def run_case(composite, case):
    """It is right, and the composite took all of it."""
    found = run(composite, case)
    assert found.counts == {composite.name: 1}
    assert_close(found)


def softshrink():
    """An elementwise op with an attribute that no TVM has."""
    return declare(
        "softshrink",
        compute=lambda x, bound: tir.Max(x - bound, 0.0) + tir.Min(x + bound, 0.0),
        numpy=lambda x, bound: np.sign(x) * np.maximum(np.abs(x) - bound, 0),
        attrs={"bound": 0.5},
    )


def conv_then(own, **attrs):
    return lambda x, weight: own(op.conv2d(x, weight, padding=(1, 1, 1, 1)), **attrs)


def arrays(seed=0, **shapes):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}


@pytest.mark.parametrize("bound", [0.5, 0.125])
def test_in_a_composite(bound):
    own = softshrink()
    program = conv_then(own, bound=bound)
    composite = Composite(
        "conv2d_softshrink",
        lambda x, weight: own(op.conv2d(x, weight)),
        cases=[Case(program, x=SHAPE, weight=(4, 3, 3, 3), constants=["weight"])],
    )
    run_case(composite, composite.cases[0])


def test_an_attribute_that_differs_is_no_match():
    own = softshrink()
    composite = Composite("half", lambda x: own(x, bound=0.5))
    mod = selfbyoc.emit(lambda x: own(x, bound=0.25), {"x": (4, 8)})
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(mod, composites=[composite]))
    assert report.counts == {}
    assert "bound=0.5" in str(selfbyoc.explain(mod, composites=[composite]))


def test_tvm_alone_builds_it():
    own = softshrink()
    mod = selfbyoc.emit(lambda x: op.relu(own(x)), {"x": (4, 9)})
    given = arrays(x=(4, 9))
    (found,) = (
        selfbyoc.build(mod, "llvm")(**given) if GENERATION == "none" else tvm_alone(mod, given)
    )
    np.testing.assert_allclose(found, np.maximum(np.abs(given["x"]) - 0.5, 0) * (given["x"] > 0))


def tvm_alone(mod, given):
    if GENERATION == "relay":
        from tvm import relay
        from tvm.contrib import graph_executor

        run = graph_executor.GraphModule(relay.build(mod, target="llvm")["default"](tvm.cpu()))
        run.run(**given)
        return [run.get_output(0).numpy()]
    from tvm import relax

    machine = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    return [machine["main"](*(tvm.runtime.tensor(a) for a in given.values())).numpy()]


def test_declared_again():
    declare("twice", compute=lambda x: x + x, numpy=lambda x: x + x)
    first = selfbyoc.emit(lambda x: op.twice(x), {"x": (3, 5)})
    declare("twice", compute=lambda x: x * 3.0, numpy=lambda x: 3 * x)
    composite = Composite("twice", lambda x: op.twice(x))
    given = arrays(x=(3, 5))
    (found,) = tvm_alone(first, given)
    np.testing.assert_allclose(found, 3 * given["x"], rtol=1e-6)
    run_case(composite, Case(x=(3, 5)))


def test_several_inputs_that_broadcast():
    own = declare(
        "gate",
        compute=lambda x, scale, shift: x * scale + shift,
        numpy=lambda x, scale, shift: x * scale + shift,
        inputs=3,
    )
    composite = Composite("gate_relu", lambda x, scale, shift: op.relu(own(x, scale, shift)))
    run_case(composite, Case(x=(4, 6, 10), scale=(6, 1), shift=(4, 1, 10)))
    run_case(composite, Case(x=(1, 10), scale=(6, 1), shift=(1,)))


@pytest.mark.parametrize("commutes", [True, False])
def test_inputs_that_may_change_places(commutes):
    own = declare(
        "larger_square",
        compute=lambda x, y: tir.Max(x * x, y * y),
        numpy=lambda x, y: np.maximum(x * x, y * y),
        inputs=2,
        commutes=commutes,
    )
    composite = Composite("after_relu", lambda x, y: own(op.relu(x), y))

    def turned(x, y):
        return own(y, op.relu(x))

    found = run(composite, Case(turned, x=(3, 7), y=(3, 7)))
    assert found.counts == ({"after_relu": 1} if commutes else {})
    assert_close(found)


def test_a_reduction():
    own = declare(
        "log_sum_exp",
        compute=log_sum_exp,
        numpy=lambda x, axis: np.log(np.exp(x).sum(axis=axis)),
        attrs={"axis": -1},
        kind="reduction",
        shape=lambda x, axis: tuple(e for n, e in enumerate(x) if n != axis % len(x)),
    )
    composite = Composite("negative_lse", lambda x: op.negative(own(x)))
    run_case(composite, Case(x=(6, 33)))
    run_case(composite, Case(lambda x: op.negative(own(x, axis=0)), x=(5, 3)))


def log_sum_exp(x, axis):
    axis %= len(x.shape)
    k = te.reduce_axis((0, x.shape[axis]), name="k")
    kept = [e for n, e in enumerate(x.shape) if n != axis]
    total = te.compute(
        kept, lambda *i: te.sum(te.exp(x(*i[:axis], k, *i[axis:])), axis=k), name="lse_sum"
    )
    return te.compute(kept, lambda *i: te.log(total(*i)), name="lse")


def test_one_that_moves_data_and_takes_a_list():
    own = declare(
        "interleave",
        compute=lambda a, b: te.compute(
            (int(a.shape[0]) * 2, a.shape[1]),
            lambda i, j: tir.if_then_else(
                tir.indexmod(i, 2) == 0, a(tir.indexdiv(i, 2), j), b(tir.indexdiv(i, 2), j)
            ),
            name="interleave",
        ),
        numpy=lambda a, b: np.stack([a, b], axis=1).reshape(-1, a.shape[1]),
        inputs=None,
        kind="injective",
        shape=lambda a, b: (2 * a[0], a[1]),
    )
    composite = Composite("relu_interleave", lambda x, y: own([op.relu(x), op.tanh(y)]))
    run_case(composite, Case(x=(3, 5), y=(3, 5)))


def test_attributes_of_every_sort():
    """They come back as they were given, on both generations; those left out are the defaults."""
    seen = []

    def repeated(x, times, mode, flag, other, nothing):
        seen.append((times, mode, flag, other, nothing))
        rows = int(x.shape[0]) * times[0]
        return te.compute((rows, x.shape[1]), lambda i, j: x(tir.indexdiv(i, times[0]), j))

    own = declare(
        "repeated",
        compute=repeated,
        numpy=lambda x, times, **rest: np.repeat(x, times[0], 0),
        attrs={"times": (2, 2), "mode": "up", "flag": True, "other": False, "nothing": None},
        kind="injective",
        shape=lambda x, times, **rest: (x[0] * times[0], x[1]),
    )
    composite = Composite("repeated", lambda x: op.relu(own(x, flag=False)))
    run_case(
        composite, Case(lambda x: op.relu(own(x, times=(3, 1), flag=False, mode="no")), x=(2, 5))
    )
    assert set(seen) == {((3, 1), "no", False, False, None)}
    assert all(type(flag) is bool for _, _, flag, _, _ in seen)


def test_another_dtype():
    own = declare(
        "is_positive",
        compute=lambda x: tir.Select(x > tir.const(0, "float32"), 1, 0).astype("int8"),
        numpy=lambda x: (x > 0).astype("int8"),
        dtype=lambda x: "int8",
    )
    composite = Composite("positive", lambda x: own(op.negative(x)))
    run_case(composite, Case(x=(4, 7)))


def test_an_op_that_tvm_has():
    """`sin` is in both TVMs and not in the vocabulary."""
    own = declare("sine", compute=te.sin, numpy=np.sin, relay="sin", relax="sin")
    mod = selfbyoc.emit(lambda x: own(x), {"x": (2, 3)})
    assert "selfbyoc" not in str(mod)
    composite = Composite("sine_relu", lambda x: op.relu(own(x)))
    run_case(composite, Case(x=(5, 7)))


def quick_gelu():
    return declare(
        "quick_gelu",
        compute=lambda x: x * te.sigmoid(x * tir.const(1.702, "float32")),
        numpy=lambda x: x / (1 + np.exp(-1.702 * x)),
        means=lambda x: op.multiply(x, op.sigmoid(op.multiply(x, 1.702))),
    )


def spelled(x, weight):
    """As an importer writes it, the factors the other way round."""
    y = op.dense(x, weight)
    return op.multiply(op.sigmoid(op.multiply(y, 1.702)), y)


def test_a_program_is_read_as_it():
    own = quick_gelu()
    composite = Composite("dense_quick_gelu", lambda x, weight: own(op.dense(x, weight)))
    run_case(composite, Case(spelled, x=(3, 8), weight=(5, 8), constants=["weight"]))
    run_case(composite, Case(x=(3, 8), weight=(5, 8)))  # and is written as that program
    mod = selfbyoc.emit(spelled, {"x": (3, 8), "weight": (5, 8)})
    assert "quick_gelu" in str(selfbyoc.explain(mod, composites=[composite]))


@pytest.mark.parametrize("factor", [1.702, 1.5])
def test_a_program_that_is_read_elsewhere_too_or_differs_is_not(factor):
    own = quick_gelu()
    composite = Composite("quick", lambda x: own(x))

    def program(x):
        inner = op.sigmoid(op.multiply(x, factor))
        result = op.multiply(x, inner)
        return (result, inner) if factor == 1.702 else result

    mod = selfbyoc.emit(program, {"x": (3, 8)})
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(mod, composites=[composite]))
    assert report.counts == {}


def test_it_runs_in_a_partitioned_model_beside_others():
    own = softshrink()
    composite = Composite("shrunk", lambda x: own(op.tanh(x)))
    mod = selfbyoc.emit(lambda x: op.exp(own(op.tanh(op.abs(x)))), {"x": (4, 9)})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    assert selfbyoc.report(parted).counts == {"shrunk": 1}
    given = arrays(x=(4, 9))
    (found,) = selfbyoc.build(parted, "llvm")(**given)
    wanted = np.exp(np.maximum(np.tanh(np.abs(given["x"])) - 0.5, 0))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_verify_judges_it():
    """Against the meaning in NumPy: a compute that is not that is found."""
    declare("thrice", compute=lambda x: x * 3.001, numpy=lambda x: x * 3)
    composite = Composite("thrice", lambda x: op.thrice(op.negative(x)))
    mod = selfbyoc.emit(lambda x: op.thrice(op.negative(x)), {"x": (4, 9)})
    verdict = selfbyoc.verify(mod, composites=[composite])
    assert not verdict.ok


def function(x):
    return x


@pytest.mark.parametrize(
    ("name", "told", "says"),
    [
        ("relu", {}, "op relu is built in"),
        ("two words", {}, "'two words': expected a name"),
        ("new", {"kind": "elemwise"}, "did you mean 'elementwise'"),
        ("new", {"inputs": 0}, "inputs=0"),
        ("new", {"kind": "reduction"}, "needs shape="),
        ("new", {"compute": 3}, "compute: expected a function, found 3"),
        ("new", {"inputs": 2}, r"compute\(x\) does not take 2 inputs"),
        ("new", {"attrs": {"alpha": 1.0}}, "alpha="),
        ("new", {GENERATION: "sinn"}, "is no op of this TVM; did you mean"),
        ("new", {GENERATION: RELU}, f"{GENERATION}='{RELU}' is read as op relu already"),
        ("new", {"means": function, "inputs": None}, "means= needs a number"),
        ("new", {"means": function}, "a program of all inputs; found"),
        ("new", {"means": lambda x: op.exp(1.0)}, r"that does not read \['x0'\]"),
        ("new", {"means": lambda x, y: op.add(x, y)}, "does not take 1 inputs"),
    ],
)
def test_bad_declarations(name, told, says):
    with pytest.raises(OpError, match=says):
        declare(name, **{"compute": function, "numpy": function, **told})
    assert name == "relu" or name not in KINDS


def test_an_op_that_means_itself():
    declare("loop", compute=function, numpy=function)
    with pytest.raises(OpError, match="found the op itself"):
        declare("loop", compute=function, numpy=function, means=lambda x: op.relu(op.loop(x)))


def test_an_attribute_that_the_op_has_not():
    own = softshrink()
    with pytest.raises(CompositeError, match=r"no attribute 'bount'; .*did you mean 'bound'"):
        Composite("shrunk", lambda x: own(x, bount=0.25))


def test_a_model_whose_attribute_was_not_named():
    """An older declaration had it; whoever wrote the model meant something by it."""
    mod = selfbyoc.emit(lambda x: op.relu(softshrink()(x, bound=0.25)), {"x": (4, 9)})
    declare("softshrink", compute=function, numpy=function)
    with pytest.raises(Exception, match=r"op softshrink: .* attributes \['bound'\]; name them"):
        selfbyoc.build(selfbyoc.partition_for_tefuse(mod), "llvm")


def test_another_way_to_have_it():
    """The op of TVM that was read as it is read so no more."""
    told = {"compute": te.sin, "numpy": np.sin}
    own = declare("wave", relay="sin", relax="sin", **told)
    mod = selfbyoc.emit(lambda x: op.relu(own(x)), {"x": (4, 9)})
    declare("wave", relay="cos", relax="cos", compute=te.cos, numpy=np.cos)
    composite = Composite("wave_relu", lambda x: op.relu(op.wave(x)))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    assert selfbyoc.report(parted).counts == {}
    run_case(composite, Case(x=(4, 9)))


def scaled_tanh():
    return declare(
        "scaled_tanh",
        compute=lambda x, scale: te.tanh(x * scale),
        numpy=lambda x, scale: np.tanh(x * scale),
        attrs={"scale": 2.0},
        means=lambda x, scale: op.tanh(op.multiply(x, scale)),
    )


@pytest.mark.parametrize("scale", [2.0, 0.25])
def test_a_program_has_the_attributes(scale):
    """Written with those that are given, read with the defaults."""
    own = scaled_tanh()
    mod = selfbyoc.emit(lambda x: own(x, scale=scale), {"x": (4, 9)})
    given = arrays(x=(4, 9))
    (found,) = tvm_alone(mod, given)
    np.testing.assert_allclose(found, np.tanh(given["x"] * scale), rtol=1e-5)
    composite = Composite("tanh", lambda x: own(x))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    assert selfbyoc.report(parted).counts == ({"tanh": 1} if scale == 2.0 else {})


def test_equal_shapes_with_another_attribute():
    """Two kernels, each with its own constant."""
    own = softshrink()
    composite = Composite("shrunk", lambda x: own(op.relu(x)))
    mod = selfbyoc.emit(
        lambda x: own(op.relu(op.exp(own(op.relu(x), bound=0.125))), bound=0.75), {"x": (4, 9)}
    )
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    assert selfbyoc.report(parted).counts == {"shrunk": 2}
    given = arrays(x=(4, 9))
    (found,) = selfbyoc.build(parted, "llvm")(**given)
    inner = np.maximum(np.maximum(given["x"], 0) - 0.125, 0)
    np.testing.assert_allclose(found, np.maximum(np.exp(inner) - 0.75, 0), rtol=1e-5)


def test_what_a_users_functions_raise():
    declare("bad", compute=lambda x: x.nothing, numpy=lambda x: x)
    composite = Composite("bad", lambda x: op.bad(x))
    mod = selfbyoc.emit(lambda x: op.bad(x), {"x": (3, 5)})
    with pytest.raises(ComputeError, match="op bad: its compute raised AttributeError"):
        selfbyoc.build(selfbyoc.partition_for_tefuse(mod, composites=[composite]), "llvm")
    declare(
        "shapeless", compute=lambda x: x, numpy=lambda x: x, kind="opaque", shape=lambda x: x[9]
    )
    with pytest.raises(Exception, match=r"op shapeless: no type of a result of float32\[3, 5\]"):
        selfbyoc.emit(lambda x: op.shapeless(x), {"x": (3, 5)})


def test_an_op_that_nobody_declared_is_told_with_the_line():
    """`sin` is in both TVMs: the way in is an op that is declared, then forgotten."""
    own = declare("sine", compute=te.sin, numpy=np.sin, relay="sin", relax="sin")
    mod = selfbyoc.emit(lambda x: op.relu(own(x)), {"x": (2, 3)})
    del KINDS["sine"], vocabulary._READ["sin"]
    text = str(selfbyoc.explain(mod))
    line = f'declare("sin", {GENERATION}="sin", compute=..., numpy=...)'
    assert "1 x sin, " in text
    assert f"MFLOP: no composite has this op; nobody declared it: {line}" in text


@pytest.mark.parametrize("name", vocabulary.written())
def test_a_built_in_op_is_declared_whole(name):
    """As a user's: a meaning beside the compute, and a way to write it in one TVM at least."""
    kind = KINDS[name]
    assert kind.numpy is not None
    if not vocabulary.forms(kind):
        assert writer.function_of(name) or name in ONE_TVM_ONLY[GENERATION]
