"""What is told of symbolic sizes: melting, formulas, op info, the page, the commands."""

import itertools
import json
import re

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

import selfbyoc
from selfbyoc import UNKNOWN, op, op_info
from selfbyoc.__main__ import main
from selfbyoc.analysis.explain.grouping import left
from selfbyoc.analysis.kernels import kernels
from selfbyoc.analysis.melting.formulas import formula
from selfbyoc.commands.page.drawing import draw
from selfbyoc.commands.page.page import Page, render
from selfbyoc.errors import InputError
from selfbyoc.graph import Symbol
from selfbyoc.ir.emit import emit
from selfbyoc.models.onnx_model import graph_of
from selfbyoc.transform import AttachOpInfo, FuseTIR
from selfbyoc.tvm import Schedule, get_block, tir

CPU = {"kind": "llvm", "mcpu": "cascadelake", "num-cores": 2}
ASKED = {"x": ("batch", "n", 33), "w": (48, 33), "b": (48,)}
READ = re.compile(r"(?<![\w.#])(131|113)(?![\w.])")  # sizes at which symbols are read


def program(x, w, b):
    """A composite, and an op that is left."""
    return op.softmax(op.relu(op.bias_add(op.dense(x, w), b, axis=-1)), axis=1)


def module(*rows):
    """Its rows may be numbers, or names of symbols."""
    symbols = {name: tir.Var(name, "int64") for name in rows if isinstance(name, str)}
    shape = (*(symbols.get(row, row) for row in rows), 33)
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal(ASKED[n]).astype("float32") for n in "wb"}
    return emit(program, {"x": shape}, weights)


def parted(*rows):
    return selfbyoc.partition_for_tefuse(module(*rows), target=CPU)


def bounded(most):
    mod = module("batch", "n")
    main_ = mod["main"].with_attr("tir_var_upper_bound", {"n": most})
    mod.update_func(mod.get_global_var("main"), main_)
    return mod


def test_melting_at_given_sizes():
    """As of a module of these sizes: its ops are those, and what they read and write."""
    (kernel,) = selfbyoc.melting(parted("batch", "n"), CPU, sizes={"n": 50, "batch": 3}).kernels
    (wanted,) = selfbyoc.melting(parted(3, 50), CPU).kernels
    assert kernel.sizes == {"batch": 3, "n": 50}
    assert wanted.sizes == {}
    assert "  at batch=3, n=50\n" in str(kernel)
    for name in ("flops", "bytes_before", "traffic_before", "argument_bytes"):
        assert getattr(kernel, name) == getattr(wanted, name), name
    assert [op.outputs for op in kernel.ops] == [op.outputs for op in wanted.ops]


def test_melting_says_at_which_sizes():
    mod = parted("batch", "n")
    read = dict(selfbyoc.report(mod).sizes)
    (kernel,) = selfbyoc.melting(mod, CPU).kernels
    assert (kernel.sizes, kernel.examples) == (read, ("batch", "n"))
    text = f"at batch={read['batch']}, n={read['n']}, an example; sizes={{'batch': ...}}, or --size"
    assert text in str(kernel)
    (kernel,) = selfbyoc.melting(mod, CPU, sizes={"batch": 2}).kernels
    assert kernel.examples == ("n",)
    assert f"at batch=2, n={read['n']}, an example of n; sizes={{'n': ...}}" in str(kernel)


def test_melting_does_not_go_over_the_bound():
    mod = selfbyoc.partition_for_tefuse(bounded(40), target=CPU)
    assert selfbyoc.melting(mod, CPU).kernels[0].sizes["n"] == 40
    with pytest.raises(InputError, match="sizes: n: expected at most 40, found 41"):
        selfbyoc.melting(mod, CPU, sizes={"n": 41})


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"N": 8}, "sizes: no symbol 'N'; expected batch, n"),
        ({"bach": 8}, "sizes: no symbol 'bach'; expected batch, n; did you mean 'batch'"),
        ({"n": 0}, "sizes: n: expected a whole number from 1 on, found 0"),
        ({"n": True}, "sizes: n: expected a whole number from 1 on, found True"),
        ({"n": 2.0}, "sizes: n: expected a whole number from 1 on, found 2.0"),
        ([("n", 2)], "sizes: expected a dict such as {'n': 128}, found list"),
    ],
)
def test_sizes_that_are_none(sizes, text):
    with pytest.raises(InputError, match=re.escape(text)):
        selfbyoc.melting(parted("batch", "n"), CPU, sizes=sizes)


def test_sizes_of_a_module_without_symbols():
    with pytest.raises(InputError, match="sizes: found 'n'; expected none: nothing here is symbol"):
        selfbyoc.melting(parted(2, 7), CPU, sizes={"n": 7})


def test_formulas_of_kernels():
    """Each is what a report of any size says."""
    mod = parted("batch", "n")
    (kernel,) = selfbyoc.melting(mod, CPU).kernels
    every = {name: str(found) for name, found in kernel.formulas.items()}
    flops = 2 * 33 * 48 + 48 + 48
    assert every == {
        "bytes_before": "384 batch n", "traffic_before": "768 batch n", "flops": f"{flops} batch n"
    }  # fmt: skip
    assert f"operations        {flops} batch n\n" in f"{kernel}\n"
    for batch, n in ((1, 1), (2, 64)):
        sizes = {"batch": batch, "n": n}
        (other,) = selfbyoc.melting(mod, CPU, sizes=sizes).kernels
        assert other.formulas == kernel.formulas
        assert {m: f.at(sizes) for m, f in other.formulas.items()} == {
            m: getattr(other, m) for m in other.formulas
        }
    told = json.loads(selfbyoc.melting(mod, CPU).to_json())["kernels"][0]
    assert told["formulas"]["flops"] == {"symbols": ["batch", "n"], "terms": [[flops, [1, 1]]]}


def test_formulas_of_numbers():
    found = formula(lambda s: 5 * s["a"] * s["b"] ** 2 + s["b"] + 7, ("a", "b"))
    assert str(found) == "5 a b^2 + b + 7"
    for a, b in itertools.product((1, 2, 9), (3, 50)):
        assert found.at({"a": a, "b": b}) == 5 * a * b * b + b + 7
    assert str(formula(lambda s: 0, ("a",))) == "0"
    assert formula(lambda s: s["a"] // 4, ("a",)) is None
    assert formula(lambda s: s["a"] ** 3, ("a",)) is None
    assert formula(lambda s: 1, ()) is None


def image():
    """TVM's own function of a convolution and relu, with its op info."""
    n = tir.Var("n", "int64")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((n, 8, 7, 6), "float32"))
    w = relax.Var("w", relax.TensorType((16, 8, 3, 3), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv2d(x, w, padding=1))
            y = builder.emit_output(relax.op.nn.relu(y))
        builder.emit_func_output(y)
    passes = [AttachOpInfo(), relax.transform.FuseOps(), FuseTIR()]
    mod = tvm.transform.Sequential(passes)(builder.get())
    (func,) = (f for v, f in mod.functions.items() if v.name_hint != "main")
    return func


def schedule_of(func):
    return Schedule(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}))


def test_op_info_has_names():
    conv, relu = op_info(image())
    assert conv.inputs[0].shape == ("n", 8, 7, 6)
    assert str(relu.outputs[0]) == "float32[n, 16, 7, 6]"
    assert conv.to_dict()["inputs"][0] == [["n", 8, 7, 6], "float32", "NCHW"]


def test_op_info_has_extents_that_follow_from_a_symbol():
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.concat([x, x], axis=0))
        builder.emit_func_output(y)
    mod = AttachOpInfo()(builder.get())
    (func,) = (f for v, f in mod.functions.items() if v.name_hint != "main")
    (info,) = op_info(func)
    assert info.outputs[0].shape in (("n * 2", 8), ("n + n", 8))


@pytest.mark.parametrize(
    ("index_map", "layout", "shape"),
    [
        (lambda n, c, h, w: (n, h, w, c), "NHWC", ("n", 7, 6, 8)),
        (lambda n, c, h, w: (h, n, w, c), "HNWC", (7, "n", 6, 8)),
        (lambda n, c, h, w: (n, c // 4, h, w, c % 4), "NCHW4c", ("n", 2, 7, 6, 4)),
    ],
)
def test_layouts_beside_a_symbol_are_proved(index_map, layout, shape):
    sch = schedule_of(image())
    sch.transform_layout(get_block(sch, "pad_temp"), ("read", 0), index_map)
    conv = op_info(sch)[0]
    assert (conv.attrs["data_layout"], conv.inputs[0].shape) == (layout, shape)


def test_a_split_symbol_is_unknown():
    sch = schedule_of(image())
    split = lambda n, c, h, w: (n // 4, c, h, w, n % 4)  # noqa: E731 (an index map)
    sch.transform_layout(get_block(sch, "pad_temp"), ("read", 0), split, pad_value=0.0)
    conv = op_info(sch)[0]
    assert conv.attrs["data_layout"] is UNKNOWN
    assert conv.inputs[0].layout is UNKNOWN


def test_op_info_of_a_kernel_calls_symbols_by_name():
    """Its numbers are those that schedules see; in print they are the symbols."""
    (kernel,) = kernels(parted("batch", "n"))
    stacked, scheduled = kernel.schedule(tvm.target.Target(CPU))
    for func in (stacked.func, scheduled.mod["main"]):
        x = op_info(func)[0].inputs[0]
        assert str(x) == "float32[batch, n, 33]"
        assert [type(extent) for extent in x.shape] == [Symbol, Symbol, int]
    told = op_info(stacked.func)[0].to_dict()["inputs"][0][0]
    assert told[1] == {"symbol": "n", "read_at": int(x.shape[1])}


def test_melting_of_a_prim_func():
    func = image()
    (kernel,) = selfbyoc.melting(func, CPU, sizes={"n": 5}).kernels
    assert kernel.sizes == {"n": 5}
    assert kernel.ops[0].outputs[0].shape == (5, 16, 7, 6)
    assert kernel.flops == 5 * 16 * 42 * (2 * 8 * 9 + 1)
    with pytest.raises(InputError, match=r"prim_func: n: expected a size, as in sizes={'n': 128}"):
        selfbyoc.melting(func, CPU)
    with pytest.raises(InputError, match="sizes: no symbol 'm'; expected n"):
        selfbyoc.melting(func, CPU, sizes={"m": 5})


def test_explain_says_at_which_sizes():
    mod = module("batch", "n")
    for found in (selfbyoc.explain(mod, target=CPU), selfbyoc.explain(parted("batch", "n"))):
        assert found.report.at in str(found).splitlines()[-1]
        (matched,) = found.report.matched
        assert matched.plan.endswith(f", at {found.report.at}")
        assert left(found.report)[0].bytes > 0
        again = type(found).from_json(found.to_json())
        assert again.report.sizes == found.report.sizes
        texts = [r.reason for r in found.records] + [e[2] for e in matched.edges]
        assert not READ.search(" ".join(texts))
    assert selfbyoc.explain(module(2, 7), target=CPU).sizes == ""


def test_the_page():
    mod = module("batch", "n")
    found = selfbyoc.explain(mod, target=CPU)
    melted = selfbyoc.melting(parted("batch", "n"), CPU)
    page = render(Page("m", "", left(found.report)), graph_of(mod), found.report, melted)
    assert f"all figures and loops are at {found.report.at}." in page
    assert "numbers and loops are at batch=" in page
    assert "384 batch n" in page
    for by_kernel in (True, False):
        drawn = draw(graph_of(mod), found.report, by_kernel=by_kernel)
        assert not READ.search(re.sub(r'<[^>"]*("[^"]*"[^>"]*)*>', " ", drawn))
        assert "float32[batch, n, 48]" in drawn
        assert "dynamic" not in drawn


def model_file(folder):
    weights = [np.ones(shape, "float32") for shape in ((33, 48), (48,))]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["r"]),
        helper.make_node("Sin", ["r"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, "length", e])
        for n, e in (("x", 33), ("y", 48))
    ]
    kept = [numpy_helper.from_array(a, n) for a, n in zip(weights, "wb", strict=True)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], kept)
    opsets = [helper.make_opsetid("", 17)]
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.fixture
def said(capsys):
    """What a command prints."""

    def run(*arguments):
        assert main([*map(str, arguments)]) == 0
        return capsys.readouterr().out

    return run


def test_commands_on_a_file(tmp_path, said):
    path = model_file(tmp_path)
    assert "at length=64\n" in said("melting", path, "--size", "length=64")
    assert "an example" in said("melting", path)
    assert "float32[1, length, 33]" in said("show", path)
    assert "plans are at length=" in said("explain", path)
    checked = said("bounds", path, "--no-run", "--size", "length=9")
    assert " at length=9," in checked
    assert "length=83" in said("tune", path, "--list")
    data = tmp_path / "found.json"
    said("melting", path, "--size", "length=64", "--json", data)
    assert json.loads(data.read_text())["kernels"][0]["sizes"] == {"length": 64}


@pytest.mark.parametrize("text", ["length", "length=0", "length=x", "=3"])
def test_a_size_on_the_command_line(text, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["melting", str(tmp_path / "model.onnx"), "--size", text])
    assert f"expected NAME=1, a size of 1 to 2147483647, not '{text}'" in capsys.readouterr().err


def test_times_are_of_the_sizes():
    """What is outside of kernels too: bytes of a function of symbols are not 0."""
    found = selfbyoc.melting(parted("batch", "n"), time=True, sizes={"batch": 2, "n": 30})
    (kernel,), (outside,) = found.kernels, found.outside
    assert kernel.timing is not None
    assert "built for these sizes alone" in " ".join(str(kernel).split())
    assert outside.bytes == 2 * 4 * 2 * 30 * 48


def test_layouts_say_that_sizes_are_open():
    n = tir.Var("n", "int64")
    axes = {"axes": (0, 2, 1)}
    net = lambda x: op.relu(op.transpose(op.relu(op.transpose(x, **axes)), **axes))  # noqa: E731
    told = [
        selfbyoc.explain(selfbyoc.optimize_layouts(emit(net, {"x": (rows, 6, 8)}))).report.layouts
        for rows in (n, 5)
    ]
    assert told[0].endswith("; bytes are with 1 for each open size")
    assert "open" not in told[1]
