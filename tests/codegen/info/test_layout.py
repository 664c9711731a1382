"""Layouts: which attribute follows which change, and what is not known afterwards."""

import numpy as np
import pytest
from layouts import computed, index_map, is_known, module, moved, params, permuted, stacked

import selfbyoc
from selfbyoc import UNKNOWN, Composite, op, op_info, require
from selfbyoc.codegen.info.layout_map import INNER, OUTER, LayoutMap, Part
from selfbyoc.codegen.info.layout_rules import RULES, SENSITIVE
from selfbyoc.codegen.info.op_info import resealed
from selfbyoc.ir.declare import BUILTIN
from selfbyoc.ops.vocabulary import KINDS, elementwise_kinds, written
from selfbyoc.tvm import GENERATION, Schedule, empty, get_block, get_func, make_target, tensor, tvm
from selfbyoc.tvm.build import build_module

NHWC = permuted(0, 2, 3, 1)
NCWH = permuted(0, 1, 3, 2)
NCHW4c = LayoutMap((Part(0), Part(1, OUTER, 4), Part(2), Part(3), Part(1, INNER, 4)))
OIHW4i4o = LayoutMap((Part(0, OUTER, 4), Part(1, OUTER, 4), Part(2), Part(3),
                      Part(1, INNER, 4), Part(0, INNER, 4)))  # fmt: skip
SQUARE = (8, 8, 8, 8)


def changed(begin, *steps):
    """op info after `transform_layout(block, buffer, map)` for each step."""
    held = module(begin.func)
    sch = Schedule(held)
    for block, buffer, layout in steps:
        ndim = len({part.axis for part in layout.parts})
        sch.transform_layout(get_block(sch, block), buffer, index_map(layout, ndim))
    return {info.name: info for info in op_info(sch)}


def conv(x, w):
    return op.relu(op.conv2d(x, w, padding=1))


@pytest.mark.parametrize(
    ("layout", "letters", "shape"),
    [
        (NHWC, "NHWC", (8, 8, 8, 8)),
        (NCWH, "NCWH", (8, 8, 8, 8)),
        (NCHW4c, "NCHW4c", (8, 2, 8, 8, 4)),
    ],
)
def test_conv2d_data(layout, letters, shape):
    begin = stacked(conv, x=SQUARE, w=(8, 8, 3, 3))
    found = changed(begin, ("conv2d_pad", ("read", 0), layout))["conv2d"]
    assert found.attrs["data_layout"] == found.inputs[0].layout == letters
    assert found.inputs[0].shape == shape
    assert (found.attrs["kernel_layout"], found.attrs["out_layout"]) == ("OIHW", "NCHW")
    assert found.attrs["padding"] == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("layout", "letters"), [(OIHW4i4o, "OIHW4i4o"), (permuted(2, 3, 1, 0), "HWIO")]
)
def test_conv2d_kernel(layout, letters):
    begin = stacked(conv, x=SQUARE, w=(8, 8, 3, 3))
    found = changed(begin, ("conv2d", ("read", 1), layout))["conv2d"]
    assert found.attrs["kernel_layout"] == found.inputs[1].layout == letters
    assert found.attrs["data_layout"] == "NCHW"
    assert found.attrs["channels"] == 8


def test_both_sides_of_an_intermediate():
    """The chain's value in NHWC: the producer's output and the consumer's input say so."""
    begin = stacked(
        lambda x, w, v: op.conv2d(op.conv2d(x, w, padding=1), v, padding=1),
        x=SQUARE, w=(8, 8, 3, 3), v=(8, 8, 3, 3),
    )  # fmt: skip
    found = changed(begin, ("conv2d", ("write", 0), NHWC))
    assert found["conv2d"].attrs["out_layout"] == found["conv2d_1"].attrs["data_layout"] == "NHWC"
    assert found["conv2d"].attrs["data_layout"] == found["conv2d_1"].attrs["out_layout"] == "NCHW"


@pytest.mark.parametrize("size", [(8, 8, 8, 8), (2, 4, 6, 8)])
def test_pools_want_both_tensors_alike(size):
    begin = stacked(lambda x: op.max_pool2d(x, pool_size=3, strides=1, padding=1), x=size)
    read, write = ("max_pool2d_pad", ("read", 0), NHWC), ("max_pool2d", ("write", 0), NHWC)
    assert changed(begin, read, write)["max_pool2d"].attrs["layout"] == "NHWC"
    half = changed(begin, read)["max_pool2d"]
    assert half.attrs["layout"] is UNKNOWN
    assert (half.inputs[0].layout, half.outputs[0].layout) == ("NHWC", "NCHW")
    assert half.attrs["pool_size"] == (3, 3)


AXES = {
    "softmax": (lambda x: op.softmax(x, axis=1), {"x": SQUARE}, "softmax", ("softmax_max",
                "softmax_exp")),
    "layer_norm": (lambda x, g, b: op.layer_norm(x, g, b, axis=1),
                   {"x": SQUARE, "g": (8,), "b": (8,)}, "layer_norm",
                   ("layer_norm_sum", "layer_norm_var")),
    "rms_norm": (lambda x, g: op.rms_norm(x, g, axis=1), {"x": SQUARE, "g": (8,)}, "rms_norm",
                 ("rms_norm_var",)),
    "bias_add": (lambda x, w, b: op.bias_add(op.conv2d(x, w), b, axis=1),
                 {"x": SQUARE, "w": (8, 8, 1, 1), "b": (8,)}, "bias_add", ("bias_add",)),
    "concatenate": (lambda x, y: op.concatenate([op.tanh(x), y], axis=1),
                    {"x": SQUARE, "y": SQUARE}, "concatenate", ()),
}  # fmt: skip


# Relay has no rms_norm: over another axis than the last it stays the ops that it is written as.
MOVING = ["softmax", "layer_norm", "bias_add", *(["rms_norm"] if GENERATION == "relax" else [])]


@pytest.mark.parametrize("kind", MOVING)
@pytest.mark.parametrize(("layout", "axis"), [(NHWC, 3), (NCWH, 1), (permuted(1, 0, 2, 3), 0)])
def test_an_axis_moves_along(kind, layout, axis):
    program, shapes, name, readers = AXES[kind]
    begin = stacked(program, **shapes)
    found = changed(begin, (readers[0], ("read", 0), layout), (name, ("write", 0), layout))[name]
    assert found.attrs["axis"] == axis
    assert is_known(found)


def test_an_axis_that_is_split_is_not_known():
    program, shapes, name, readers = AXES["softmax"]
    begin = stacked(program, **shapes)
    found = changed(
        begin, (readers[0], ("read", 0), NCHW4c), (name, ("write", 0), NCHW4c)
    )["softmax"]  # fmt: skip
    assert found.attrs["axis"] is UNKNOWN
    other = LayoutMap((Part(0), Part(1), Part(2), Part(3, OUTER, 4), Part(3, INNER, 4)))
    found = changed(begin, (readers[0], ("read", 0), other), (name, ("write", 0), other))["softmax"]
    assert found.attrs["axis"] == 1
    assert found.outputs[0].shape == (8, 8, 8, 2, 4)


def test_concatenate_wants_all_alike():
    program, shapes, name, _ = AXES["concatenate"]
    begin = stacked(program, **shapes)
    all_moved = (
        ("tanh", ("write", 0), NHWC), (name, ("write", 0), NHWC), (name, ("read", 0), NHWC),
    )  # fmt: skip
    found = changed(begin, *all_moved)[name]
    assert found.attrs["axis"] == 3
    assert changed(begin, *all_moved[:1])[name].attrs["axis"] is UNKNOWN


def test_reductions():
    begin = stacked(lambda x: op.relu(op.mean(x, axis=(2, 3))), x=SQUARE)
    assert changed(begin, ("mean_sum", ("read", 0), NHWC))["mean"].attrs["axis"] == (1, 2)
    split = LayoutMap((Part(0), Part(1), Part(2, OUTER, 2), Part(3), Part(2, INNER, 2)))
    assert changed(begin, ("mean_sum", ("read", 0), split))["mean"].attrs["axis"] == (2, 3, 4)
    turned = changed(begin, ("mean_sum", ("read", 0), permuted(1, 0, 2, 3)))["mean"]
    assert turned.attrs["axis"] is UNKNOWN  # the result's axes did not change places


def test_a_reduction_and_a_reshape_in_between():
    """B15: ops without letters between two with."""
    begin = stacked(
        lambda x, w: op.relu(op.reshape(op.mean(op.conv2d(x, w, padding=1), axis=(3,)),
                                        shape=(8, 64))),
        x=SQUARE, w=(8, 8, 3, 3),
    )  # fmt: skip
    found = changed(begin, ("conv2d", ("write", 0), NHWC))
    assert found["conv2d"].attrs["out_layout"] == "NHWC"
    assert found["mean"].attrs["axis"] is UNKNOWN  # N, C, H in order, but C and H changed places
    assert found["reshape"].attrs["shape"] == (8, 64)
    found = changed(begin, ("conv2d", ("write", 0), NHWC), ("mean_out", ("write", 0),
                                                             permuted(0, 2, 1)))  # fmt: skip
    assert found["reshape"].attrs["shape"] is UNKNOWN
    assert found["reshape"].outputs[0].layout is None
    assert found["relu"].outputs[0].shape == (8, 64)


def test_transposes_compose():
    begin = stacked(lambda x: op.relu(op.transpose(x, axes=(0, 2, 3, 1))), x=SQUARE)
    found = changed(begin, ("transpose", ("read", 0), NHWC))["transpose"]
    assert found.attrs["axes"] == (0, 1, 2, 3)
    assert is_known(found)


def test_batch_matmul_turns():
    begin = stacked(lambda a, b: op.batch_matmul(a, b), a=(4, 8, 8), b=(4, 8, 8))
    found = changed(begin, ("batch_matmul", ("read", 1), permuted(0, 2, 1)))["batch_matmul"]
    assert (found.attrs["transpose_a"], found.attrs["transpose_b"]) == (False, True)


def test_no_rule_no_answer():
    """dense has none: its weight's layout is not known, and the rest is as it was."""
    begin = stacked(lambda x, w: op.relu(op.dense(x, w)), x=(4, 8), w=(8, 8))
    found = changed(begin, ("dense", ("read", 1), permuted(1, 0)))
    assert found["dense"].inputs[1].layout is UNKNOWN
    assert found["dense"].inputs[1].shape == (8, 8)
    assert found["dense"].inputs[0].layout is None
    assert is_known(found["relu"])


def test_an_op_between_two_layouts_is_not_the_plain_op():
    begin = stacked(lambda x: op.relu(x), x=(8, 8))
    assert changed(begin, ("relu", ("read", 0), permuted(1, 0)))["relu"].inputs[0].layout is UNKNOWN
    both = (("relu", ("read", 0), permuted(1, 0)), ("relu", ("write", 0), permuted(1, 0)))
    assert is_known(changed(begin, *both)["relu"])


@pytest.mark.parametrize(
    ("index_map", "shape"),
    [
        (lambda n, c, h, w: (n, c * 8 + h, w), (1, 48, 8)),
        (lambda n, c, h, w: (n, c, h // 4, h // 2 % 2, h % 2, w), (1, 6, 2, 2, 2, 8)),
    ],
)
def test_other_maps_are_not_followed(index_map, shape):
    """Fused, split in three: the shape is true, and the letters are not known."""
    begin = stacked(conv, x=(1, 6, 8, 8), w=(8, 6, 3, 3))
    held = module(begin.func)
    sch = Schedule(held)
    sch.transform_layout(get_block(sch, "conv2d_pad"), ("read", 0), index_map)
    found = op_info(sch)[0]
    assert found.attrs["data_layout"] is UNKNOWN
    assert found.inputs[0].layout is UNKNOWN
    assert found.inputs[0].shape == shape


def test_padding_is_not_followed():
    begin = stacked(lambda x: op.softmax(op.relu(x), axis=1), x=(6, 6))
    held = module(begin.func)
    sch = Schedule(held)
    block = get_block(sch, "relu")
    sch.transform_layout(block, ("write", 0), lambda i, j: (i, j // 4, j % 4), pad_value=0.0)
    found = op_info(sch)
    assert found[0].outputs[0].layout is found[1].inputs[0].layout is UNKNOWN
    assert found[1].attrs["axis"] is UNKNOWN


def test_axes_of_one_block_renamed_prove_nothing():
    """transform_block_layout: which axis is which is no longer to be seen."""
    begin = stacked(lambda x: op.softmax(op.relu(x), axis=1), x=(8, 8, 8))
    held = module(begin.func)
    sch = Schedule(held)
    sch.transform_block_layout(get_block(sch, "relu"), lambda a, b, c: (a, c, b))
    found = op_info(sch)
    assert found[0].inputs[0].layout is UNKNOWN
    assert found[1].attrs["axis"] == 1
    # The trace proves it, to those who know where it began.
    assert all(map(is_known, op_info(sch, begin.func)))
    assert not all(map(is_known, op_info(sch, stacked(lambda x: op.softmax(op.relu(x), axis=1),
                                                      x=(8, 8, 9)).func)))  # fmt: skip


@pytest.mark.parametrize(
    ("index_map", "followed"),
    [
        (lambda *index: index, True),
        (lambda a, b, c: (a, b, c), True),
        (lambda a, b, c: (a, c, b), False),
        (lambda a, b, c: (a, b, c // 4, c % 4), False),
    ],
)
@pytest.mark.parametrize("buffer", [("read", 0), ("write", 0)])
def test_only_the_identity_changes_no_layout(index_map, followed, buffer):
    """With the axes renamed, the trace is the only evidence; of cubes, shapes tell nothing."""
    begin = stacked(lambda x: op.softmax(op.tanh(op.relu(x)), axis=1), x=(8, 8, 8))
    held = module(begin.func)
    sch = Schedule(held)
    sch.transform_block_layout(get_block(sch, "tanh"), lambda a, b, c: (a, b * 8 + c))
    sch.transform_layout(get_block(sch, "tanh"), buffer, index_map)
    found = op_info(resealed(sch.mod["main"], sch, begin.recorded))
    told = [(i.attrs, i.inputs, i.outputs) for i in found] if all(map(is_known, found)) else []
    assert (told == [(i.attrs, i.inputs, i.outputs) for i in begin.ops]) == followed


def test_caches_hide_their_own_layouts():
    begin = stacked(conv, x=SQUARE, w=(8, 8, 3, 3))
    held = module(begin.func)
    sch = Schedule(held)
    block = get_block(sch, "conv2d")
    sch.cache_read(block, 1, "global")
    sch.transform_layout(block, ("read", 1), index_map(OIHW4i4o, 4))
    sch.cache_write(block, 0, "global")
    sch.transform_layout(block, ("write", 0), index_map(NHWC, 4))
    assert [info.attrs for info in op_info(sch)] == [info.attrs for info in begin.ops]


def run(func, arrays):
    built = build_module(tvm.IRModule({"main": func}), make_target("llvm"))
    out = empty([int(e) for e in params(func)[-1].shape], "float32")
    get_func(built, "main")(*(tensor(np.ascontiguousarray(a)) for a in arrays), out)
    return out.numpy()


@pytest.mark.parametrize(
    ("block", "buffer", "layout", "in_place"),
    [
        ("conv2d_pad", ("read", 0), NHWC, True),
        ("reshape", ("read", 0), NHWC, False),
        ("dense", ("read", 1), permuted(1, 0), False),
        ("dense", ("write", 0), permuted(1, 0), False),
    ],
)
def test_materialised_where_it_cannot_be_written(block, buffer, layout, in_place):
    """B11: a copy at the boundary keeps the original layout for everybody else."""
    begin = stacked(
        lambda x, w, v: op.relu(op.dense(op.reshape(op.conv2d(x, w, padding=1),
                                                    shape=(2, 64)), v)),
        x=(2, 4, 4, 4), w=(4, 4, 3, 3), v=(8, 64),
    )  # fmt: skip
    held = module(begin.func)
    sch = Schedule(held)
    name = "T_reshape" if block == "reshape" else block
    found = selfbyoc.transform_layout(
        sch, get_block(sch, name), buffer, index_map(layout, len(layout.parts))
    )
    assert found == in_place
    infos = op_info(sch)
    assert all(map(is_known, infos))
    assert begin.ops == op_info(begin.func)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype("float32")
              for s in ((2, 4, 4, 4), (4, 4, 3, 3), (8, 64))]  # fmt: skip
    if in_place:
        arrays[0] = moved(arrays[0], layout)
    else:
        assert [i.attrs for i in infos] == [i.attrs for i in begin.ops]
    func = sch.mod["main"]
    np.testing.assert_allclose(
        run(func, arrays), computed(func, infos, arrays), rtol=1e-4, atol=1e-4
    )


def test_the_table_names_ops_that_exist():
    kinds = set(KINDS)
    assert set(RULES) <= kinds
    assert set(SENSITIVE) <= kinds
    assert BUILTIN & set(written()) - elementwise_kinds() <= set(SENSITIVE) <= set(KINDS)


def only_nchw(x, w):
    return op.relu(op.conv2d(x, w, data_layout="NCHW"))


def any_layout(x, w):
    return op.relu(op.conv2d(x, w))


def test_a_composite_requires_a_layout_or_takes_any():
    """B14: as an attribute of the pattern, or as a check."""

    def check(match):
        layout = match.op("conv2d").attrs["data_layout"]
        require(layout in ("NCHW", "NHWC"), f"no schedule for {layout}")

    def program(x, w):
        return op.relu(op.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"))

    mod = selfbyoc.emit(
        program, {"x": ((1, 9, 9, 4), "float32"), "w": ((3, 3, 4, 8), "float32")}
    )  # fmt: skip
    strict, free = Composite("strict", only_nchw), Composite("free", any_layout, check=check)
    found = selfbyoc.report(selfbyoc.partition_for_tefuse(mod, composites=[strict, free]))
    assert found.counts == {"free": 1}
    (record,) = selfbyoc.explain(mod, composites=[strict]).why_not("relu")
    assert "data_layout='NCHW', found data_layout='NHWC'" in record.reason
