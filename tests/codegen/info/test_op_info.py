"""Op info: what is said of each op, its blocks after every primitive, and what cannot be read."""

import inspect
import json
import pickle
from dataclasses import fields, replace
from pathlib import Path

import pytest
from layouts import index_map, module, permuted, stacked

import selfbyoc
from selfbyoc import UNKNOWN, OpInfo, Source, TensorInfo, op, op_info
from selfbyoc.codegen.info.accesses import OP_LABEL, accesses_of
from selfbyoc.codegen.info.op_info import attach, recorded_of, resealed
from selfbyoc.codegen.info.op_record import OP_INFO, from_json, info_from, to_json
from selfbyoc.errors import InputError, OpInfoError, UnknownValue
from selfbyoc.tvm import Schedule, get_block, make_target, module_source, te, tvm
from selfbyoc.tvm.build import build_module


def program(x, w, b):
    y = op.conv2d(x, w, strides=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2)
    return op.relu(op.bias_add(y, b))


@pytest.fixture(scope="module")
def begin():
    return stacked(program, x=(1, 8, 9, 9), w=(6, 4, 3, 3), b=(6,))


def test_what_is_said_of_an_op(begin):
    conv, bias, relu = op_info(begin.func)
    assert conv == OpInfo(
        name="conv2d",
        kind="conv2d",
        pattern="out_elemwise_fusable",
        attrs={
            "data_layout": "NCHW", "out_layout": "NCHW", "kernel_layout": "OIHW",
            "strides": (2, 1), "dilation": (1, 2), "padding": (1, 0, 1, 0), "groups": 2,
            "channels": 6, "out_dtype": None,
        },
        inputs=(TensorInfo((1, 8, 9, 9), "float32", "NCHW"),
                TensorInfo((6, 4, 3, 3), "float32", "OIHW")),
        outputs=(TensorInfo((1, 6, 5, 5), "float32", "NCHW"),),
        blocks=("conv2d_pad", "conv2d"),
        composite="under_test",
        sources=(Source("param", 0), Source("param", 1)),
    )  # fmt: skip
    assert conv.layout_sensitive == ("data_layout", "kernel_layout", "out_layout")
    assert bias.attrs == {"axis": 1}
    assert bias.layout_sensitive == ("axis",)
    assert relu.layout_sensitive == ()
    assert relu.outputs[0].layout is None
    assert [info.blocks for info in (bias, relu)] == [("bias_add",), ("relu",)]


def test_a_tensor_is_a_shape_and_a_dtype(begin):
    shape, dtype = op_info(begin.func)[0].outputs[0]
    assert (shape, dtype) == ((1, 6, 5, 5), "float32")
    assert op_info(begin.func)[0].outputs[0][0] == shape


def scheduled(begin, *steps):
    held = module(begin.func)  # while it is scheduled: docs/makers/tvm-notes.md
    sch = Schedule(held)
    for step in steps:
        step(sch)
    return sch


def inline(name):
    return lambda sch: sch.compute_inline(get_block(sch, name))


def cache_read(sch):
    sch.cache_read(get_block(sch, "conv2d"), 1, "global")


def cache_write(sch):
    sch.cache_write(get_block(sch, "conv2d"), 0, "global")


def decompose(sch):
    block = get_block(sch, "conv2d")
    sch.decompose_reduction(block, sch.get_loops(block)[4])


def rfactor(sch):
    block = get_block(sch, "conv2d")
    sch.rfactor(sch.get_loops(block)[4], 0)


def blockize(sch):
    block = get_block(sch, "conv2d")
    sch.blockize(sch.get_loops(block)[4])


def compute_at(sch):
    at = sch.get_loops(get_block(sch, "conv2d"))[1]
    sch.compute_at(get_block(sch, "conv2d_pad"), at)


def reverse_compute_at(sch):
    at = sch.get_loops(get_block(sch, "conv2d"))[1]
    sch.reverse_compute_at(get_block(sch, "bias_add"), at)


def reindex(sch):
    sch.reindex(get_block(sch, "conv2d"), ("read", 1))


@pytest.mark.parametrize(
    ("steps", "conv", "bias", "relu"),
    [
        ((), ("conv2d_pad", "conv2d"), ("bias_add",), ("relu",)),
        ((inline("conv2d_pad"),), ("conv2d",), ("bias_add",), ("relu",)),
        ((inline("bias_add"),), ("conv2d_pad", "conv2d"), (), ("relu",)),
        ((cache_read,), ("w_global", "conv2d_pad", "conv2d"), ("bias_add",), ("relu",)),
        ((cache_write,), ("conv2d_pad", "conv2d", "conv2d_global"), ("bias_add",), ("relu",)),
        ((decompose,), ("conv2d_pad", "conv2d_init", "conv2d_update"), ("bias_add",), ("relu",)),
        ((rfactor,), ("conv2d_pad", "conv2d_rf", "conv2d"), ("bias_add",), ("relu",)),
        ((blockize,), ("conv2d_pad", "conv2d_init", "conv2d", "conv2d_o"), ("bias_add",),
         ("relu",)),
        ((compute_at, reverse_compute_at), ("conv2d_pad", "conv2d"), ("bias_add",), ("relu",)),
        ((reindex,), ("conv2d_pad", "w_reindex_reindex", "conv2d"), ("bias_add",), ("relu",)),
        ((cache_write, cache_read, decompose, inline("bias_add")),
         ("w_global", "conv2d_pad", "conv2d_init", "conv2d_update", "conv2d_global"), (),
         ("relu",)),
    ],
)  # fmt: skip
def test_blocks_by_lineage(begin, steps, conv, bias, relu):
    """Whatever a primitive makes of a block belongs to its op."""
    sch = scheduled(begin, *steps)
    found = {info.name: info for info in op_info(sch)}
    blocks = {name: set(info.blocks) for name, info in found.items()}
    assert blocks == {"conv2d": set(conv), "bias_add": set(bias), "relu": set(relu)}
    assert found["bias_add"].within == ("" if bias else "relu")
    names = [block.name for block in accesses_of(sch.mod["main"]).blocks]
    assert sorted(names) == sorted(name for info in found.values() for name in info.blocks)


def test_without_labels_names_decide(begin):
    """As after a pass that drops the annotations of blocks."""
    held = module(begin.func)
    sch = Schedule(held)
    for name in ("conv2d_pad", "conv2d", "bias_add", "relu"):
        sch.unannotate(get_block(sch, name), OP_LABEL)
    sch.compute_inline(get_block(sch, "conv2d_pad"))
    found = op_info(sch)
    assert [info.blocks for info in found] == [("conv2d",), ("bias_add",), ("relu",)]
    assert found[0].attrs["data_layout"] is UNKNOWN
    assert found[0].attrs["strides"] == (2, 1)


def test_a_schedule_that_replaces_the_function_keeps_the_info(begin):
    bare = begin.func.without_attr(OP_INFO)
    held = module(bare)
    sch = Schedule(held)
    assert op_info(sch) == ()
    found = op_info(resealed(sch.mod["main"], sch, begin.recorded))
    assert found == begin.ops


def test_json_round_trip(begin):
    recorded = begin.recorded
    assert from_json(to_json(recorded)) == recorded
    unknown = replace(
        recorded.ops[0],
        attrs={"axis": UNKNOWN, "shape": (1, None), "value": 0.5, "name": "text", "flag": True},
        outputs=(TensorInfo(UNKNOWN, "int8", UNKNOWN),),
    )
    data = json.loads(json.dumps(unknown.to_dict()))
    found = info_from(data)
    assert found == unknown
    assert found.attrs["axis"] is UNKNOWN


@pytest.mark.parametrize("use", [
    bool, int, float, len, iter, str, lambda u: u == 1, lambda u: u + 1,
    lambda u: [1, 2][u], lambda u: u < 3, lambda u: f"{u}", lambda u: u[0], lambda u: u in (1, 2),
], ids=lambda f: getattr(f, "__name__", ""))  # fmt: skip
def test_unknown_is_no_value(use):
    with pytest.raises(UnknownValue, match="UNKNOWN"):
        use(UNKNOWN)


def test_unknown_is_one():
    assert repr(UNKNOWN) == "UNKNOWN"
    assert pickle.loads(pickle.dumps(UNKNOWN)) is UNKNOWN
    assert (UNKNOWN, 1) == (UNKNOWN, 1)


def plain_function():
    x = te.placeholder((4,), name="x")
    return te.create_prim_func([x, te.compute((4,), lambda i: x[i], name="y")])


def test_a_function_of_tvms_own_has_none():
    assert op_info(plain_function()) == ()
    assert op_info(Schedule(plain_function())) == ()


def test_what_is_no_function():
    with pytest.raises(InputError, match="expected a PrimFunc or a Schedule of one, found str"):
        op_info("main")


@pytest.mark.parametrize("damage", [
    lambda text: text[:100],
    lambda text: "[]",
    lambda text: "null",
    lambda text: text.replace('"refs"', '"reefs"'),
    lambda text: text.replace('"param",0', '"param",17'),
    lambda text: text.replace('"block",1]', '"block",99]'),
    lambda text: json.dumps({**json.loads(text), "refs": []}),
    lambda text: json.dumps({**json.loads(text), "ops": [{"name": "x"}]}),
    lambda text: json.dumps({**json.loads(text), "accesses": {}}),
])  # fmt: skip
def test_damaged_info_is_an_error(begin, damage):
    text = damage(to_json(begin.recorded))
    with pytest.raises(OpInfoError, match=f"the attribute {OP_INFO} is damaged"):
        op_info(begin.func.with_attr(OP_INFO, text))


def test_the_kernel_is_the_same_with_and_without():
    """Labels and info are dropped in lowering: same instructions, same size."""
    chain = stacked(program, x=(1, 8, 9, 9), w=(6, 4, 3, 3), b=(6,))
    held = module(chain.func)
    sch = Schedule(held)
    for name in ("conv2d_pad", "conv2d", "bias_add", "relu"):
        sch.unannotate(get_block(sch, name), OP_LABEL)
    bare = sch.mod["main"].without_attr(OP_INFO)
    sources = [
        module_source(build_module(tvm.IRModule({"main": f}), make_target("llvm")), "asm")
        for f in (held["main"], bare)
    ]
    assert sources[0] == sources[1]
    assert "tefuse" not in sources[0]


def test_every_field_is_documented():
    """B6: one documented type."""
    page = (Path(selfbyoc.__file__).parents[1] / "docs/op-info.md").read_text(encoding="utf-8")
    for record in (OpInfo, TensorInfo):
        assert inspect.getdoc(record)
        for name in [field.name for field in fields(record)]:
            assert f"`{name}`" in page or f".{name}" in page, name
    assert "`layout_sensitive`" in page


def test_a_known_layout_is_public():
    """What users import."""
    assert selfbyoc.UNKNOWN is UNKNOWN
    assert {"OpInfo", "TensorInfo", "UNKNOWN", "op_info", "transform_layout"} <= set(
        selfbyoc.__all__
    )


def test_attributes_of_other_functions_do_not_matter(begin):
    """The seal is of the body: a global symbol changes nothing."""
    named = begin.func.with_attr("global_symbol", "some_kernel")
    assert op_info(named) == begin.ops
    assert recorded_of(attach(named, begin.recorded)) == begin.recorded


def test_an_index_map_of_the_tests_is_one():
    assert index_map(permuted(0, 2, 1), 3)(1, 2, 3) == (1, 3, 2)


def test_it_survives_saving_and_printing(begin):
    """As JSON and as TVMScript, which both databases and people pass around."""
    sch = scheduled(begin, decompose, inline("bias_add"))
    sch.transform_layout(
        get_block(sch, "conv2d_pad"), ("read", 0), index_map(permuted(0, 2, 3, 1), 4)
    )
    wanted = op_info(sch)
    assert wanted[0].attrs["data_layout"] == "NHWC"
    mod = sch.mod
    assert op_info(tvm.ir.load_json(tvm.ir.save_json(mod))["main"]) == wanted
    assert op_info(tvm.script.from_source(mod.script())["main"]) == wanted
