"""Relay's own passes before and after partitioning (A57), and after quantisation (A51)."""

import math

import numpy as np
import pytest
from models import road_data, road_reference
from packing import ROAD, ROAD_COUNTS
from relay_models import close, relay_model, run_graph
from tvm import relay
from tvm.relay.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard

import selfbyoc
from selfbyoc import Composite, op, partition_for_tefuse
from selfbyoc.simplify import simplified
from selfbyoc.tvm import te, tvm

PASSES = {
    "FoldConstant": relay.transform.FoldConstant(),
    "AlterOpLayout": relay.transform.AlterOpLayout(),
    "SimplifyInference": relay.transform.SimplifyInference(),
    "CanonicalizeOps": relay.transform.CanonicalizeOps(),
    "EliminateCommonSubexpr": relay.transform.EliminateCommonSubexpr(),
    "CombineParallelConv2D": relay.transform.CombineParallelConv2D(),
    "FoldScaleAxis": relay.transform.FoldScaleAxis(),
    "SimplifyExpr": relay.transform.SimplifyExpr(),
    "FastMath": relay.transform.FastMath(),
    "DeadCodeElimination": relay.transform.DeadCodeElimination(),
}


def done(name, mod):
    """The pass as relay.build would run it."""
    both = tvm.transform.Sequential([relay.transform.InferType(), PASSES[name]])
    with tvm.target.Target("llvm -mcpu=nehalem"), tvm.transform.PassContext(opt_level=4):
        return relay.transform.InferType()(both(mod))


@pytest.fixture(name="data")
def fixture_data():
    return road_data()


def bound(params):
    mod = relay_model()
    main = relay.build_module.bind_params_by_name(mod["main"], params)
    return relay.transform.InferType()(tvm.IRModule.from_expr(main))


@pytest.mark.parametrize("name", PASSES)
def test_after_partitioning(name, data):
    """What was cut out stays as it is, and is right."""
    x, params = data
    parted = partition_for_tefuse(bound(params), composites=ROAD)
    after = done(name, parted)
    assert selfbyoc.report(parted).counts == ROAD_COUNTS
    kernels = [v.name_hint for v in after.get_global_vars() if "tefuse" in v.name_hint]
    assert len(kernels) == sum(ROAD_COUNTS.values())
    close(run_graph(relay.build(after, target="llvm"), x), road_reference(x, params))


@pytest.mark.parametrize("name", PASSES)
def test_before_partitioning(name, data):
    x, params = data
    parted = partition_for_tefuse(done(name, bound(params)), composites=ROAD)
    assert selfbyoc.report(parted).counts == ROAD_COUNTS
    close(run_graph(relay.build(parted, target="llvm"), x), road_reference(x, params))


def quantised(weight_scale, rng):
    """Two convolutions after relay.quantize, each followed by what brings its sums back to int8."""
    y, params = relay.var("x", shape=(1, 5, 9, 7)), {}
    for i, (o, c) in enumerate(((7, 5), (6, 7))):
        params[f"w{i}"] = (rng.standard_normal((o, c, 3, 3)) * 0.3).astype("float32")
        y = relay.nn.conv2d(y, relay.var(f"w{i}", shape=(o, c, 3, 3)), padding=(1, 1), channels=o,
                            kernel_size=(3, 3))  # fmt: skip
        y = relay.nn.relu(y)
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y))
    options = {"calibrate_mode": "global_scale", "global_scale": 8.0, "skip_conv_layers": []}
    with relay.quantize.qconfig(weight_scale=weight_scale, **options):
        return relay.quantize.quantize(mod, params)


@pytest.fixture(name="rng")
def fixture_rng(monkeypatch):
    monkeypatch.setattr(np, "math", math, raising=False)  # TVM 0.17 asks NumPy 2 for it
    return np.random.default_rng(11)


def constants(mod, name):
    """The second operands of all calls of an op, in order."""
    found = []

    def visit(expr):
        if isinstance(expr, relay.Call) and str(expr.op.name) == name:
            found.append(expr.args[1].data.numpy())

    relay.analysis.post_order_visit(mod["main"], visit)
    return found


def by_hand(mod, x):
    """What the quantised program computes, in NumPy; its sums in int64."""
    scale_in, scale_out = constants(mod, "multiply")
    y = np.clip(np.round(x * scale_in), -127, 127).astype("int64")
    halves, shifts = constants(mod, "add"), constants(mod, "right_shift")
    for kernel, half, shift in zip(constants(mod, "nn.conv2d"), halves, shifts, strict=True):
        padded = np.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        sums = np.einsum("nchwij,ocij->nohw", windows, kernel.astype("int64"))
        y = np.clip((np.maximum(sums, 0) + half) >> shift, -127, 127)
    return y.astype("float32") * scale_out


def test_relay_quantize_by_shifts_is_taken(rng):
    """Its default, weights scaled by powers of two: sum, half, shift, clip, cast."""
    mod = quantised("power2", rng)
    parted = partition_for_tefuse(mod)
    assert selfbyoc.report(parted).counts == {"conv2d_narrowed": 2}
    x = rng.standard_normal((1, 5, 9, 7)).astype("float32")
    found = run_graph(relay.build(parted, target="llvm"), x)
    assert len(np.unique(found)) > 20
    np.testing.assert_array_equal(found, by_hand(mod, x))


def test_relay_quantize_by_multipliers_is_taken(rng):
    """Scaled by the largest weight: fixed_point_multiply in int64 is a qnn.requantize."""
    mod = quantised("max", rng)
    parted = partition_for_tefuse(mod)
    assert selfbyoc.report(parted).counts == {"conv2d_narrowed": 2}
    assert "fixed_point_multiply" not in str(parted)
    x = rng.standard_normal((1, 5, 9, 7)).astype("float32")
    plain, ours = (run_graph(relay.build(m, target="llvm"), x) for m in (mod, parted))
    assert len(np.unique(ours)) > 20
    np.testing.assert_array_equal(ours, plain)


@pytest.mark.parametrize(
    ("multiplier", "shift", "ends", "is_scale"),
    [
        (3 << 29, -9, (-127, 127), True),
        (3 << 29, 0, (-127, 127), True),
        (1 << 30, 0, (-127, 127), False),  # a half, which 0.17 rounds in 32 bits
        (3 << 29, 2, (-127, 127), False),  # a factor of 3
        (3 << 29, -9, (0, 255), True),
        ((3 << 29) + 1, -9, (-127, 127), False),  # float32 holds no such factor
        (3 << 28, -9, (-127, 127), False),  # of 30 bits: qnn makes 31
        (-(3 << 29), -9, (-127, 127), False),
        (3 << 29, -9, (-127, float(1 << 31)), False),
    ],
)
def test_a_multiplier_is_a_scale_where_both_mean_the_same(multiplier, shift, ends, is_scale):
    data = relay.var("x", shape=(3, 5), dtype="int32")
    y = relay.fixed_point_multiply(relay.cast(data, "int64"), multiplier, shift)
    y = relay.cast(relay.clip(y, *ends), "int32")
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([data], y)))
    simpler = simplified(mod)
    assert ("qnn.requantize" in str(simpler)) == is_scale
    assert ("fixed_point_multiply" in str(simpler)) != is_scale
    if shift > 0 or multiplier == 1 << 30 or ends[1] >= 1 << 31:
        return  # TVM 0.17 has no code for it
    x = np.array([[-(1 << 31), -1, 0, 1, (1 << 31) - 1], [341, 342, -341, -342, 1023],
                  [85_000, -85_000, 171, 170, 169]], "int32")  # fmt: skip
    moved = (x.astype("int64") * multiplier + (1 << (30 - shift))) >> (31 - shift)
    np.testing.assert_array_equal(
        run_graph(relay.build(simpler, target="llvm"), x), np.clip(moved, *ends)
    )


def test_a_composite_without_a_compiler_is_relays_own():
    """A1: Relay's VM lowers it as TVM's; the hook is not asked (no kernel of ours is there)."""
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in ((4, 8), (16, 8))]
    x, w = relay.var("x", shape=(4, 8)), relay.var("w", shape=(16, 8))
    inner = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    inner = inner.with_attr("Composite", "tefuse.nobody_knows_this")
    outer = [relay.var("a", shape=(4, 8)), relay.var("b", shape=(16, 8))]
    mod = tvm.IRModule.from_expr(relay.Function(outer, relay.Call(inner, outer)))
    executable = relay.vm.compile(mod, target="llvm")
    found = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu()).run(*arrays).numpy()
    np.testing.assert_allclose(found, np.maximum(arrays[0] @ arrays[1].T, 0), atol=1e-5)


def test_register_compute_makes_no_op():
    """A10: why doesn't this work? It raises nothing, and there is no op to call; a callback has
    only te to return, which is no Relay. (Calling such a name without a type ends the process.)
    """
    name = "relay.op.my_conv2d_of_the_test"
    relay.op.register_compute(name)(lambda attrs, inputs, out_type: inputs)
    assert not hasattr(relay.op, name.rpartition(".")[2])

    class Returned(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_op("nn.relu")(wildcard())

        def callback(self, pre, post, node_map):
            return te.placeholder((4,), name="y")

    mod = tvm.IRModule.from_expr(relay.nn.relu(relay.var("x", shape=(4,))))
    with pytest.raises(tvm.TVMError, match="RelayExpr"):
        rewrite(Returned(), mod["main"].body)


def test_what_require_datatype_is():
    """A17: as docs/discussions.md says. Without `super().__init__()` it is the attribute that is
    missing; set, the callback sees types. Matching here sees them always.
    """
    x = relay.var("x", shape=(4, 6))
    body = relay.nn.relu(relay.nn.relu(x))

    class Unready(DFPatternCallback):
        def __init__(self):
            self.pattern = is_op("nn.relu")(wildcard())

    with pytest.raises(AttributeError, match="require_type"):
        rewrite(Unready(), body)

    class Typed(DFPatternCallback):
        def __init__(self, require_type):
            super().__init__(require_type)
            self.pattern, self.seen = is_op("nn.relu")(wildcard()), []

        def callback(self, pre, post, node_map):
            self.seen.append(pre._checked_type_)
            return post

    callbacks = {flag: Typed(flag) for flag in (False, True)}
    for callback in callbacks.values():
        rewrite(callback, body)
    assert callbacks[False].seen == [None, None]
    assert {tuple(map(int, ty.shape)) for ty in callbacks[True].seen} == {(4, 6)}

    shapes = []
    composite = Composite(
        "c", lambda x: op.relu(x), check=lambda match: shapes.append(match.args["x"].shape)
    )
    partition_for_tefuse(tvm.IRModule.from_expr(body), composites=[composite])
    assert set(shapes) == {(4, 6)}


@pytest.mark.parametrize("summand", [lambda y: y, lambda y: relay.nn.relu(y)], ids=["one", "equal"])
def test_a_result_added_to_itself_and_returned(rng, summand):
    """SimplifyExpr copied the call of the kernel, and Inline ended the build."""
    x = relay.var("x", shape=(1, 3, 5, 7))
    pooled = relay.nn.max_pool2d(x, (2, 2))
    body = relay.Tuple([pooled, relay.add(summand(pooled), summand(pooled))])
    parted = partition_for_tefuse(tvm.IRModule.from_expr(relay.Function([x], body)))
    assert selfbyoc.report(parted).counts == {"max_pool2d": 1}
    data = np.abs(rng.standard_normal((1, 3, 5, 7))).astype("float32")
    wanted = np.stack([data[:, :, i : 4 + i, j : 6 + j] for i in (0, 1) for j in (0, 1)]).max(0)
    found = selfbyoc.build(parted)(data)
    np.testing.assert_array_equal(found[0], wanted)
    np.testing.assert_array_equal(found[1], 2 * wanted)
