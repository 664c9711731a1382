"""`unfuse`: composites of a partitioned module as ordinary ops of main again (wish C33)."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness import CASES, expected, model, random_args
from layouts import params
from packing import dense as packed_dense

import selfbyoc
from selfbyoc import (
    BUILTIN,
    Case,
    Composite,
    TensorInfo,
    emit,
    op,
    op_info,
    partition_for_tefuse,
    unfuse,
)
from selfbyoc.analysis.kernels import kernels
from selfbyoc.errors import InputError
from selfbyoc.ir.generation import ir as reader
from selfbyoc.partition.generation import ir
from selfbyoc.partition.original_weights import ORIGINALS, Unpack, originals_of
from selfbyoc.runtime.tolerance import first_wrong, longest_reduction
from selfbyoc.tvm import GENERATION, constant_numpy, structural_equal, tvm

BY_NAME = {composite.name: composite for composite in BUILTIN}
CHAIN = Case(
    lambda x, w1, w2: op.relu(op.conv2d(op.relu(op.conv2d(x, w1, padding=1)), w2, padding=1)),
    x=(1, 3, 17, 19), w1=(8, 3, 3, 3), w2=(8, 8, 3, 3), constants=("w1", "w2"),
)  # fmt: skip


def prepared(mod):
    """What partitioning works on: the module as it was, typed or normalised."""
    if GENERATION == "relay":
        from tvm import relay

        return relay.transform.InferType()(mod)
    from selfbyoc.partition.relax import without_item_calls

    return without_item_calls(ir.prepare(mod, None))


def kernels_of(mod, target="llvm"):
    """How many functions TVM's own build makes and calls."""
    if GENERATION == "relay":
        import json

        from tvm import relay

        with tvm.transform.PassContext(opt_level=2):  # 3 adds functions that change layouts
            graph = json.loads(relay.build(mod, target=target).get_graph_json())
        return sum(node["op"] == "tvm_op" for node in graph["nodes"])
    from tvm import relax

    passes = [
        relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(), relax.transform.FuseOps(), relax.transform.FuseTIR(),
    ]  # fmt: skip
    main = tvm.transform.Sequential(passes)(relax.transform.RunCodegen()(mod))["main"]
    values = [b.value for block in main.body.blocks for b in block.bindings]
    return sum(isinstance(v, relax.Call) and v.op.name == "relax.call_tir" for v in values)


def as_tvm_builds(mod, arrays):
    """TVM's own road, without `selfbyoc.build`."""
    if GENERATION == "relay":
        from tvm import relay
        from tvm.contrib import graph_executor

        with tvm.transform.PassContext(opt_level=3):
            lib = relay.build(mod, target="llvm")
        module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
        for name, array in arrays.items():
            module.set_input(name, array)
        module.run()
        return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    from tvm import relax

    machine = relax.VirtualMachine(
        tvm.compile(relax.transform.RunCodegen()(mod), tvm.target.Target("llvm")), tvm.cpu()
    )
    found = machine["main"](*map(tvm.runtime.tensor, arrays.values()))
    return [found.numpy()] if hasattr(found, "numpy") else [f.numpy() for f in found]


SMALL = [c for c in CASES if np.prod(next(iter(c.values[1].args.values()))[0]) < 1e4]


@pytest.mark.parametrize(("composite", "case"), SMALL)
def test_main_is_what_it_was(composite, case):
    """Cases of every composite: the same ops, and weights packed by any of them unpacked to the
    bit.
    """
    mod = model(composite, case, random_args(case))
    parted = partition_for_tefuse(mod, composites=[composite])
    assert selfbyoc.report(parted).counts
    back = unfuse(parted)
    assert ir.external_functions(back) == {}
    assert ORIGINALS not in back.attrs.keys()  # noqa: SIM118 (no Python dict)
    assert structural_equal(back["main"], prepared(mod)["main"])
    assert ir.external_functions(parted), "unfuse changed its argument"


RUN = {
    "conv2d_relu_conv2d_relu": "strided-second",
    "conv2d_batch_norm_relu": "strided",
    "parallel_conv2d": "strided",
    "attention": "2x13x10-2x10x21-2x21x7-21",
    "layer_norm_dense_int8": None,
    "conv2d": "small-images",
    "softmax": None,
}


@pytest.mark.parametrize("separate", [False, True], ids=["ops", "separate"])
@pytest.mark.parametrize("name", RUN)
def test_it_builds_and_is_right(name, separate):
    """On relay.build, or RunCodegen and tvm.compile, and on `selfbyoc.build`."""
    composite, wanted = BY_NAME[name], RUN[name]
    case = next(c for c in composite.cases if wanted in (None, c.name))
    args = random_args(case)
    mod = model(composite, case, args)
    back = unfuse(partition_for_tefuse(mod, composites=[composite]), separate=separate)
    inputs = {v.name: args[v.name] for v in reader.parameters(back["main"])}
    reduction = longest_reduction(reader.read(mod["main"]))
    builds = as_tvm_builds if separate else lambda mod, given: selfbyoc.build(mod)(**given)
    for f, w in zip(builds(back, inputs), expected(composite, case, args), strict=True):
        assert (wrong := first_wrong(f, w, str(f.dtype), reduction)) is None, wrong


def test_separate_ops_are_not_fused():
    """C33: each op a function of its own, which passes the checks of TVM's build."""
    mod = model(BY_NAME["conv2d_relu_conv2d_relu"], CHAIN, random_args(CHAIN))
    parted = partition_for_tefuse(mod)
    assert kernels_of(parted) == (1 if GENERATION == "relay" else 0)  # Relax: an extern function
    assert kernels_of(unfuse(parted)) == 2  # TVM fuses each ReLU with its convolution
    assert kernels_of(unfuse(parted, separate=True)) == 4


def two_outputs(x):
    y = op.exp(x)
    return y, op.divide(y, op.sum(y, axis=-1, keepdims=True))


@pytest.mark.parametrize("separate", [False, True], ids=["ops", "separate"])
@pytest.mark.parametrize(
    ("pattern", "args"),
    [
        (two_outputs, {"x": (6, 37)}),
        (lambda x, y: op.concatenate([op.relu(x), op.exp(op.add(y, 2.0))], axis=1),
         {"x": (3, 5), "y": (3, 9)}),
        (lambda x: op.split(x, indices_or_sections=3, axis=1)[1], {"x": (4, 9)}),
        (lambda x, m: op.batch_norm(op.relu(x), m, m, m, m)[0], {"x": (2, 3, 4, 5), "m": (3,)}),
        (lambda x: op.relu(op.clip(op.reshape(x, shape=(6, 10)), a_min=-1.0, a_max=0.5)),
         {"x": (3, 20)}),
    ],
    ids=["outputs", "concatenate", "split", "batch_norm", "attributes"],
)  # fmt: skip
def test_forms_of_ops(pattern, args, separate):
    """Tuples in and out, scalars, shapes and limits as arguments."""
    composite, case = Composite("mine", pattern), Case(pattern, **args)
    given = {name: np.abs(array) for name, array in random_args(case).items()}
    mod = model(composite, case, given)
    parted = partition_for_tefuse(mod, composites=[composite])
    assert selfbyoc.report(parted).counts == {"mine": 1}
    back = unfuse(parted, separate=separate)
    for f, w in zip(selfbyoc.build(back)(**given), expected(composite, case, given), strict=True):
        assert first_wrong(f, w, "float32", 60) is None
    if not separate:
        assert structural_equal(back["main"], prepared(mod)["main"])


# ---- some of them


def mixed():
    """dense-relu twice with different weights (equal functions), and a softmax."""

    def program(x, w1, w2):
        return op.softmax(op.relu(op.dense(op.relu(op.dense(x, w1)), w2)))

    rng = np.random.default_rng(3)
    weights = {n: rng.standard_normal((24, 24)).astype("float32") for n in ("w1", "w2")}
    mod = emit(program, {"x": ((5, 24), "float32")}, weights)
    composites = [packed_dense, Composite("soft", lambda x: op.softmax(x))]
    x = rng.standard_normal((5, 24)).astype("float32")
    y = x
    for w in weights.values():
        y = np.maximum(y @ w.T, 0)
    scores = np.exp(y - y.max(-1, keepdims=True))
    return mod, composites, x, scores / scores.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["packed_dense"], {"soft": 1}),
        (["tefuse.packed_dense"], {"soft": 1}),
        (["soft"], {"packed_dense": 2}),
        (["softmax"], {"packed_dense": 2}),  # a root op
        (["relu_1", "soft"], {}),  # the other dense shares its function
        ([], {"packed_dense": 2, "soft": 1}),
        (None, {}),
    ],
)
def test_by_name(names, left):
    mod, composites, x, wanted = mixed()
    parted = partition_for_tefuse(mod, composites=composites)
    back = unfuse(parted, names, separate="soft" in left)
    assert selfbyoc.report(back).counts == left
    assert len(selfbyoc.melting(back).kernels) == len(left)
    assert first_wrong(selfbyoc.build(back)(x)[0], wanted, "float32", 24) is None


def test_by_symbol_and_step_by_step():
    mod, composites, x, wanted = mixed()
    back = partition_for_tefuse(mod, composites=composites)
    while matched := selfbyoc.report(back).matched:
        back = unfuse(back, [matched[0].symbol])
        assert first_wrong(selfbyoc.build(back)(x)[0], wanted, "float32", 24) is None
    assert structural_equal(back["main"], prepared(mod)["main"])


def test_the_report_stays_true():
    mod, composites, _, _ = mixed()
    back = unfuse(partition_for_tefuse(mod, composites=composites), ["packed_dense"])
    report = selfbyoc.report(back)
    assert report.left == {"dense": 2, "relu": 2}
    (first, second) = (r for r in report.records if r.status == "unfused")
    assert (first.composite, first.root, first.symbol) == ("packed_dense", "relu", "")
    assert second.reason == "its ops are main's again, as unfuse was asked"
    assert "unfused packed_dense at relu and 1 more: its ops are main's again" in str(report)
    answer = selfbyoc.explain(back).why("dense", "relu")
    assert not answer.together
    assert "packed_dense at relu: its ops are main's again" in str(answer)


def test_partitioned_again_with_other_composites():
    mod, composites, x, wanted = mixed()
    parted = partition_for_tefuse(mod, composites=composites)
    with pytest.raises(InputError, match="partitioned already"):
        partition_for_tefuse(unfuse(parted, ["soft"]))
    for separate in (False, True):  # primitive functions are read through
        free = unfuse(parted, separate=separate)
        again = partition_for_tefuse(free, composites=composites[:1])
        assert selfbyoc.report(again).counts == {"packed_dense": 2}
    assert first_wrong(selfbyoc.build(again)(x)[0], wanted, "float32", 24) is None


# ---- where the weights come from

ELSEWHERE = """
import sys
import selfbyoc
from selfbyoc.tvm import structural_equal, tvm
before, parted = (tvm.ir.load_json(open(path).read()) for path in sys.argv[1:])
back = selfbyoc.unfuse(parted)
print(selfbyoc.report(parted).counts, selfbyoc.report(back).counts)
print(structural_equal(back["main"], before["main"]))
"""


def test_a_module_from_disk_in_another_process(tmp_path):
    """Of a composite that the other process does not know, its weights packed."""
    mod, composites, _, _ = mixed()
    parted = partition_for_tefuse(mod, composites=composites)
    paths = []
    for name, each in (("before", prepared(mod)), ("parted", parted)):
        paths.append(str(tmp_path / f"{name}.json"))
        Path(paths[-1]).write_text(tvm.ir.save_json(each), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    command = [sys.executable, "-c", ELSEWHERE, *paths]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{'packed_dense': 2, 'soft': 1} {}\nTrue\n"


def test_originals_are_the_constants_of_the_module_and_no_copies():
    case = Case(packed_dense_program, x=(4, 16), weight=(19, 16), constants=["weight"])
    mod = model(packed_dense, case, random_args(case))
    parted = partition_for_tefuse(mod, composites=[packed_dense])
    (kept,) = originals_of(parted).values()
    mine = {id_of(c) for c in constants_of(prepared(mod))}
    assert id_of(kept) in mine
    plain = partition_for_tefuse(mod, composites=[packed_dense], pack=False)
    assert originals_of(plain) == {}
    assert structural_equal(unfuse(plain)["main"], prepared(mod)["main"])


def packed_dense_program(x, weight):
    return op.dense(x, weight)


def constants_of(mod):
    if GENERATION == "relay":
        from tvm import relay

        found = []
        relay.analysis.post_order_visit(
            mod["main"], lambda e: found.append(e) if isinstance(e, relay.Constant) else None
        )
        return found
    values = [b.value for block in mod["main"].body.blocks for b in block.bindings]
    return [a for v in values for a in getattr(v, "args", []) if hasattr(a, "value")]


def id_of(constant):
    """Where its data lies."""
    tensor = constant.data if hasattr(constant, "data") else constant.value
    return tensor.numpy().tobytes() if GENERATION == "relay" else np.from_dlpack(tensor).ctypes.data


def test_what_a_converter_reads_of_a_packed_weight():
    """B23: TensorRT's converter takes the eight attributes, and of the weight its shape, type and
    values. The kernel has it packed: op info has the first two, `unfuse` the values.
    """
    case = Case(
        lambda x, w: op.conv2d(x, w, strides=2, padding=(1, 0)),
        x=(1, 16, 21, 20), w=(40, 16, 3, 3), constants=("w",),
    )  # fmt: skip
    args = random_args(case)
    parted = partition_for_tefuse(model(BY_NAME["conv2d"], case, args))
    (kernel,) = kernels(parted)
    stacked, scheduled = kernel.schedule(selfbyoc.host_target())
    shapes = {tuple(map(int, buffer.shape)) for buffer in params(stacked.func)}
    assert (40, 16, 3, 3) not in shapes  # it is packed
    for func in (stacked.func, scheduled.mod["main"]):
        (conv,) = op_info(func)
        assert conv.attrs == {
            "data_layout": "NCHW", "out_layout": "NCHW", "kernel_layout": "OIHW",
            "strides": (2, 2), "dilation": (1, 1), "padding": (1, 0, 1, 0), "groups": 1,
            "channels": 40, "out_dtype": None,
        }  # fmt: skip
        assert conv.inputs[1] == TensorInfo((40, 16, 3, 3), "float32", "OIHW")
    arrays = map(constant_numpy, constants_of(unfuse(parted)))
    (values,) = (array for array in arrays if array.shape == conv.inputs[1].shape)
    np.testing.assert_array_equal(values, args["w"])


def test_weights_that_are_not_known_any_more():
    mod, composites, _, _ = mixed()
    parted = partition_for_tefuse(mod, composites=composites)
    message = r"takes a packed weight of type float32\[24, 24\], and the module does not hold it"
    with pytest.raises(InputError, match=f"{message} unpacked; partition again with pack=False"):
        unfuse(parted.without_attr(ORIGINALS))
    with pytest.raises(InputError, match="which is no constant of main any more"):
        Unpack(parted)("symbol", None, "float32[24, 24]")
    assert unfuse(parted.without_attr(ORIGINALS), ["soft"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["packed_dens"], "names: 'packed_dens' is no composite, root op or symbol of this module; "
         "its composites are ['packed_dense', 'soft']; did you mean 'packed_dense'?"),
        ("soft", "names: expected a list of names, found 'soft' alone"),
    ],
)  # fmt: skip
def test_names_that_are_none(names, message):
    mod, composites, _, _ = mixed()
    with pytest.raises(InputError) as caught:
        unfuse(partition_for_tefuse(mod, composites=composites), names)
    assert message in str(caught.value)


def test_modules_that_are_none():
    mod, _, _, _ = mixed()
    with pytest.raises(InputError, match="was not partitioned"):
        unfuse(mod)
    with pytest.raises(InputError, match=r"mod: expected a tvm\.IRModule"):
        unfuse("model.onnx")
