"""Direct convolutions: where lanes lie, what is refused, other machines."""

import numpy as np
import pytest
from harness import assert_close, cpus, random_args, run_case

import selfbyoc
from selfbyoc import BUILTIN, Case, op
from selfbyoc.ir.emit import emit
from selfbyoc.machine import Machine
from selfbyoc.schedules.kernels.conv.lanes import lanes_of
from selfbyoc.schedules.kernels.conv.layer import Layer
from selfbyoc.schedules.kernels.conv.pixels.plan import usual_pixels
from selfbyoc.tvm import make_target

BY_NAME = {c.name: c for c in BUILTIN}


def pads(image, p, attrs):
    """The padded copy of one channel as lanes.py describes it, in NumPy."""
    copy = np.zeros((p.phases[0] * p.phases[1], p.length))
    for phase, lane in np.ndindex(copy.shape):
        row, column = divmod(lane, p.pitch)
        down, along = divmod(phase, p.phases[1])
        y = row * attrs["strides"][0] + down - attrs["padding"][0]
        x = column * attrs["strides"][1] + along - attrs["padding"][1]
        if 0 <= y < image.shape[0] and 0 <= x < image.shape[1]:
            copy[phase, lane] = image[y, x]
    return copy


@pytest.mark.parametrize("seed", range(40))
def test_every_tap_is_a_constant_distance(seed):
    rng = np.random.default_rng(seed)
    height, width = rng.integers(7, 20, 2)  # the widest window spans 7
    window, strides, dilation = rng.integers(1, 5, 2), rng.integers(1, 4, 2), rng.integers(1, 3, 2)
    padding = rng.integers(0, 3, 4)
    attrs = {"strides": strides, "dilation": dilation, "padding": padding}
    whole = np.pad(image := rng.standard_normal((height, width)), [padding[::2], padding[1::2]])
    out = [(whole.shape[n] - (window[n] - 1) * dilation[n] - 1) // strides[n] + 1 for n in (0, 1)]
    rows, tile, vector = (int(n) for n in rng.integers(1, (out[0] + 1, 4, 17)))
    lanes = lanes_of(image.shape, tuple(map(int, out)), tuple(window), attrs)
    p = lanes.of_rows(rows, tile * vector, vector)
    copy = pads(image, p, attrs)
    for y, x, ky, kx in np.ndindex(*out, *window):
        ty, tx = ky * dilation[0], kx * dilation[1]
        phase = ty % strides[0] * p.phases[1] + tx % strides[1]
        lane = (y + ty // strides[0]) * p.pitch + x + tx // strides[1]
        assert copy[phase, lane] == whole[y * strides[0] + ty, x * strides[1] + tx]


@pytest.mark.parametrize("cpu", [Machine(64, 32), Machine(32, 16), Machine(16, 32)])
def test_lanes_without_use_are_few(cpu):
    """Over the widths of common networks, a task's tiles are nearly full."""
    same = {"strides": (1, 1), "dilation": (1, 1), "padding": (1, 1, 1, 1), "groups": 1}
    use = {}
    for w in (7, 14, 28, 35, 56, 112, 224):
        image = (1, 64, w, w)
        layer = Layer("conv2d", image, (64, 64, 3, 3), image, same, "float32", (4, 16))
        use[w] = usual_pixels(layer, cpu)[0].lanes.use
    assert all(use[w] > 0.9 for w in (28, 35, 56, 112, 224)), use
    assert use[14] > 0.8, use
    assert use[7] > 0.7, use


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512"])
@pytest.mark.parametrize(("inputs", "size"), [(30, 27), (36, 27), (40, 13), (160, 7)])
def test_sums_in_parts_are_tasks_of_all_cores(monkeypatch, cpu, inputs, size):
    """What adds the parts is little work; what multiplies is enough."""
    monkeypatch.setenv("SELFBYOC_WINOGRAD", "0")
    target = f"llvm -mcpu={cpu} -num-cores=2"
    weight = np.random.default_rng(0).standard_normal((64, inputs, 3, 3)).astype("float32")
    args = {"x": ((1, inputs, size, size), "float32"), "w": (weight.shape, "float32")}
    mod = emit(lambda x, w: op.conv2d(x, w, padding=(1, 1)), args, {"w": weight})
    (kernel,) = selfbyoc.melting(selfbyoc.partition_for_tefuse(mod, target=target), target).kernels
    assert kernel.nest.loops_of("conv2d")[0].kind == "parallel"


def refused(composite, program, **shapes):
    """The reason of the only refusal; nothing is partitioned."""
    args = {n: s if isinstance(s[-1], str) else (s, "float32") for n, s in shapes.items()}
    mod = selfbyoc.partition_for_tefuse(emit(program, args), composites=[BY_NAME[composite]])
    report = selfbyoc.report(mod)
    assert report.counts == {}
    reasons = [r.reason for r in report.records if r.status == "refused"]
    assert reasons
    return reasons[0]


def test_refusals():
    nhwc = refused(
        "conv2d",
        lambda x, w: op.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"),
        x=(1, 9, 9, 4),
        w=(3, 3, 4, 8),
    )
    assert "NCHW" in nhwc
    double = refused(
        "conv2d",
        lambda x, w: op.conv2d(x, w),
        x=((1, 4, 9, 9), "float64"),
        w=((8, 4, 3, 3), "float64"),
    )
    assert "only float32" in double
    groups_of_two = refused(
        "depthwise_pointwise",
        lambda x, w, v: op.conv2d(op.conv2d(x, w, groups=2), v),
        x=(1, 4, 9, 9),
        w=(8, 2, 3, 3),
        v=(5, 8, 1, 1),
    )
    assert "must be depthwise" in groups_of_two
    window = refused(
        "depthwise_pointwise",
        lambda x, w, v: op.conv2d(op.conv2d(x, w, groups=4), v),
        x=(1, 4, 9, 9),
        w=(4, 1, 3, 3),
        v=(5, 4, 3, 3),
    )
    assert "must be pointwise" in window
    broadcast = refused(
        "conv2d_add",
        lambda x, w, r: op.add(op.conv2d(x, w), r),
        x=(1, 4, 9, 9),
        w=(8, 4, 3, 3),
        r=(1, 1, 7, 7),
    )
    assert "residual must be as large" in broadcast
    along = refused(
        "parallel_conv2d",
        lambda x, w, v: op.concatenate([op.conv2d(x, w), op.conv2d(x, v)], axis=2),
        x=(1, 4, 9, 9),
        w=(8, 4, 3, 3),
        v=(8, 4, 3, 3),
    )
    assert "along their channels" in along
    pool = refused("max_pool2d", lambda x: op.max_pool2d(x, layout="NHWC"), x=(1, 8, 8, 3))
    assert "only NCHW" in pool


SMALL = [
    pytest.param(composite, case, id=f"{name}-{case.name}")
    for name, wanted in {
        "conv2d": ("asymmetric", "dilated", "small-images", "grouped", "multiplier"),
        "inverted_residual": ("asymmetric", "stride-2"),
        "inception": ("tail",),
        "max_pool2d": ("asymmetric",),
        "global_avg_pool2d": ("2x3x13x17",),
    }.items()
    for composite in [BY_NAME[name]]
    for case in composite.cases
    if case.name in wanted
]


@pytest.mark.parametrize("target", cpus("llvm -mcpu=haswell", "llvm"))
@pytest.mark.parametrize(("composite", "case"), SMALL)
def test_other_machines(composite, case, target):
    run = run_case(composite, case, target=make_target(target))
    assert run.counts == {composite.name: 1}
    assert_close(run)


def test_branches_of_many_are_packed():
    """A constant weight of a branch reaches the kernel packed, as any other."""
    parallel = BY_NAME["parallel_conv2d"]
    case = next(c for c in parallel.cases if c.name == "fire")
    assert parallel.pack_for("weight_1") is parallel.pack["weight"]
    assert parallel.pack_for("bias_0") is None
    args = random_args(case)
    mod = emit(case.program, case.args, {n: args[n] for n in case.constants})
    text = str(selfbyoc.partition_for_tefuse(mod, composites=[parallel]))
    assert "4, 16, 1, 1, 16" in text
    assert "6, 6, 4, 16, 16" in text  # Winograd's


def test_a_chain_over_a_concatenation_reads_all_of_it():
    """Sums of several convolutions behind one concatenate, itself the input of the next block."""
    parallel = BY_NAME["parallel_conv2d"]

    def program(x, w0, w1, v0, v1):
        y = op.concatenate([op.conv2d(x, w0), op.relu(op.conv2d(x, w1, padding=1))])
        return op.concatenate([op.conv2d(y, v0), op.relu(op.conv2d(y, v1))])

    shapes = {"w0": (5, 3, 1, 1), "w1": (7, 3, 3, 3), "v0": (4, 12, 1, 1), "v1": (6, 12, 1, 1)}
    run = run_case(parallel, Case(program, x=(1, 3, 11, 10), **shapes))
    assert run.counts == {"parallel_conv2d": 2}
    assert_close(run)
