"""`weights="float16"`: weights are rounded, computing is float32, the file has half the bytes, and
whoever loads it need not know (whole/test_without_selfbyoc.py). The reference is NumPy on rounded
weights.
"""

import re

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.__main__ import main
from selfbyoc.analysis.kernels import kernels
from selfbyoc.errors import InputError
from selfbyoc.machine import machine
from selfbyoc.partition.generation import ir
from selfbyoc.runtime.half import split
from selfbyoc.runtime.tolerance import difference
from selfbyoc.simplify.halves import with_half_weights
from selfbyoc.tvm import GENERATION, tvm

RNG = np.random.default_rng(0)
DENSE = {"x": ((5, 333), "float32"), "w": ((129, 333), "float32"), "b": ((129,), "float32")}
CONV = {"x": ((2, 16, 15, 17), "float32"), "w": ((35, 16, 3, 3), "float32")}


def arrays(shapes):
    return {n: RNG.standard_normal(s).astype(t) for n, (s, t) in shapes.items()}


def half(array):
    return array.astype("float16").astype("float32")


def emitted(program, shapes, given):
    return emit(program, shapes, {name: a for name, a in given.items() if name != "x"})


def dense(x, w, b):
    return op.relu(op.bias_add(op.dense(x, w), b))


def dense_in_numpy(x, w, b):
    return np.maximum(x.astype("float64") @ w.T + b, 0)


def conv_in_numpy(x, w, stride):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))).astype("float64")
    windows = sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchwij,ocij->nohw", windows, w)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One model with weights of either kind, and its arrays."""
    folder, given = tmp_path_factory.mktemp("weights"), arrays(DENSE)
    for weights in ("float32", "float16"):
        library = selfbyoc.build(emitted(dense, DENSE, given), weights=weights)
        assert library.report.counts == {"dense": 1}
        library.export_library(folder / f"{weights}.so")
        np.testing.assert_array_equal(
            selfbyoc.load(folder / f"{weights}.so")(given["x"])[0], library(given["x"])[0]
        )
    return folder, given


def test_weights_are_rounded_and_nothing_else(files):
    folder, given = files
    library = selfbyoc.load(folder / "float16.so")
    assert library.weights == "float16"
    (found,) = library(given["x"])
    wanted = dense_in_numpy(given["x"], half(given["w"]), given["b"])  # the bias as it is
    assert difference(found, wanted, "float32", 333) is None
    exact = dense_in_numpy(given["x"], given["w"], given["b"])
    assert difference(found, exact, "float32", 333) is not None  # the test can fail


def test_the_file_has_half_the_bytes(files):
    folder, given = files
    sizes = [(folder / f"{weights}.so").stat().st_size for weights in ("float32", "float16")]
    saved = given["w"].nbytes // 2
    assert 0.9 * saved <= sizes[0] - sizes[1] <= 1.3 * saved  # packed: its rows are padded
    assert selfbyoc.load(folder / "float32.so").weights == "float32"


def test_dense_weights_are_halves_in_memory_too():
    """What a number beyond float16 keeps is float32, and an error names it later."""
    given, dtypes = arrays(DENSE), []
    for largest in (1.0, 7e4):
        given["w"][3, 4] = largest
        mod = with_half_weights(ir.prepare(emitted(dense, DENSE, given), None), "float16")
        (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod))
        dtypes.append(kernel.match.weight.dtype)
    assert dtypes == ["float16", "float32"]


def test_a_copy_of_it(files):
    folder, given = files
    library = selfbyoc.load(folder / "float16.so")
    library.export_library(folder / "again.so")
    again = selfbyoc.load(folder / "again.so")
    assert again.weights == "float16"
    np.testing.assert_array_equal(again(given["x"])[0], library(given["x"])[0])


@pytest.mark.parametrize("weights", ["float16", "int8", "int4"])
@pytest.mark.parametrize("is_dense", [False, True])
def test_frequencies_of_positions_are_no_weights(is_dense, weights, tmp_path):
    """As rotary embedding has them: rounded, position 3000 would be off by half a turn."""
    positions, count = np.arange(2500, 3000, dtype="float32"), 1024
    frequencies = (1e4 ** -np.linspace(0, 1, count)).astype("float32")
    x, w = positions.reshape(-1, 1), frequencies.reshape(-1, 1)
    if not is_dense:
        x, w = x.reshape(1, 1, -1), w.reshape(1, -1, 1)

    def program(x, w):
        return op.dense(x, w) if is_dense else op.batch_matmul(w, x)

    library = selfbyoc.build(emit(program, {"x": x.shape, "w": w.shape}, {"w": w}), weights=weights)
    library.export_library(tmp_path / "angles.so")
    wanted = np.outer(positions, frequencies.astype("float64"))
    wanted = wanted if is_dense else wanted.T[None]
    for found in (library(x)[0], selfbyoc.load(tmp_path / "angles.so")(x)[0]):
        np.testing.assert_allclose(found, wanted, atol=3000 * 2**-23)


@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions(stride, tmp_path):
    """Of stride 1 by Winograd: its transformed weights are what is rounded, and amplified."""
    given = arrays(CONV)

    def program(x, w):
        return op.conv2d(x, w, padding=(1, 1, 1, 1), strides=(stride, stride))

    library = selfbyoc.build(emitted(program, CONV, given), weights="float16")
    assert library.report.counts == {"conv2d": 1}
    library.export_library(tmp_path / "conv.so")
    (found,) = selfbyoc.load(tmp_path / "conv.so")(given["x"])
    wanted = conv_in_numpy(given["x"], half(given["w"]), stride)
    slack = 2.0**-11 * 16 * float(np.abs(wanted).max()) if stride == 1 else 0.0
    assert difference(found, wanted, "float32", 144, slack) is None


def test_what_is_no_weight_stays():
    """Masks with float32's lowest number, tables that are added."""
    shapes = {**DENSE, "m": ((5, 129), "float32")}
    given = arrays(shapes)
    given["m"][:, ::2] = np.finfo("float32").min

    def program(x, w, b, m):
        return op.add(dense(x, w, b), m)

    (found,) = selfbyoc.build(emitted(program, shapes, given), weights="float16")(given["x"])
    wanted = dense_in_numpy(given["x"], half(given["w"]), given["b"]) + given["m"]
    assert difference(found[:, 1::2], wanted[:, 1::2], "float32", 333) is None
    np.testing.assert_allclose(found[:, ::2], wanted[:, ::2], rtol=1e-6)


def test_weights_that_are_moved_first():
    """A weight that a product of TVM's own reads after it was turned."""
    shapes = {"x": ((5, 333), "float32"), "w": ((333, 129), "float32")}
    given = arrays(shapes)

    def program(x, w):
        return op.dense(x, op.transpose(w, axes=(1, 0)))

    for composites in (None, []):
        library = selfbyoc.build(
            emitted(program, shapes, given), composites=composites, weights="float16"
        )
        wanted = given["x"].astype("float64") @ half(given["w"])
        assert difference(library(given["x"])[0], wanted, "float32", 333) is None


def test_tables_that_are_looked_up():
    onnx_models = pytest.importorskip("onnx_models")
    made, value = onnx_models.model, onnx_models.value
    table = RNG.standard_normal((50, 40), np.float32)
    nodes = [("Gather", ["table", "ids"], "rows", {}), ("Relu", ["rows"], "y", {})]
    ends = [value("ids", onnx_models.INT64, 7)], [value("y", onnx_models.FLOAT, 7, 40)]
    ids = np.array([0, 49, 3, 3, 17, 20, 1])
    mod = selfbyoc.from_onnx(made(nodes, *ends, table=table))
    (found,) = selfbyoc.build(mod, weights="float16")(ids)
    np.testing.assert_array_equal(found, np.maximum(half(table)[ids], 0))
    table[3, 3] = 1e6
    mod = selfbyoc.from_onnx(made(nodes, *ends, table=table))
    with pytest.raises(
        InputError, match=r"the weight of take(_1)?, float32\[50, 40\], holds 1e\+06"
    ):
        selfbyoc.build(mod, weights="float16")


def test_a_partitioned_module_and_parameters():
    given = arrays(DENSE)
    parameters = {name: a for name, a in given.items() if name != "x"}
    parted = selfbyoc.partition_for_tefuse(emitted(dense, DENSE, given))
    wanted = dense_in_numpy(given["x"], half(given["w"]), given["b"])
    for library in (
        selfbyoc.build(parted, weights="float16"),
        selfbyoc.build(emit(dense, DENSE), params=parameters, weights="float16"),
    ):
        assert library.report.counts == {"dense": 1}
        assert difference(library(given["x"])[0], wanted, "float32", 333) is None


# ---- what float16 cannot say


def test_a_number_that_is_too_large():
    given = arrays(DENSE)
    given["w"][3, 4] = 65519.9  # rounds to 65504
    assert selfbyoc.build(emitted(dense, DENSE, given), weights="float16")
    given["w"][3, 4] = -65520.0
    selfbyoc.build(emitted(dense, DENSE, given))
    said = (
        r"weights: the weight of dense at relu, float32\[.*\], holds 6.552e\+04, and "
        r"float16 ends at 65504"
    )
    with pytest.raises(InputError, match=said):
        selfbyoc.build(emitted(dense, DENSE, given), weights="float16")
    with pytest.raises(InputError, match=r"the weight of (dense|matmul), float32"):
        selfbyoc.build(emitted(dense, DENSE, given), composites=[], weights="float16")
    with pytest.raises(InputError, match=r"weights: expected .*, found 'int3'"):
        selfbyoc.build(emitted(dense, DENSE, given), weights="int3")


def said_of(mod, **how):
    with pytest.raises(InputError) as caught:
        selfbyoc.build(mod, weights="float16", **how)
    return str(caught.value)


def test_it_is_named_as_in_the_onnx_file():
    """Packed by a composite, turned before, or as TVM reads it; beside one of its shape."""
    made = pytest.importorskip("onnx_models")
    arrays = {"fc.0": RNG.standard_normal((33, 33)), "fc.1": RNG.standard_normal((33, 33))}
    arrays = {name: a.astype("float32") for name, a in arrays.items()}
    arrays["fc.1"][3, 4] = 7e4
    ends = [made.value("x", made.FLOAT, 5, 33)], [made.value("y", made.FLOAT, 5, 33)]
    for turned in (0, 1):
        gemm = {"transB": turned}
        nodes = [("Gemm", ["x", "fc.0"], "a", gemm), ("Relu", ["a"], "b", {}),
                 ("Gemm", ["b", "fc.1"], "y", gemm)]  # fmt: skip
        mod = selfbyoc.from_onnx(made.model(nodes, *ends, **arrays))
        assert said_of(mod).startswith("weights: fc.1, the weight of dense at dense")
        said = said_of(mod, composites=[])
        assert re.match("weights: fc.1, the weight of (dense|matmul)", said)
    kernel = RNG.standard_normal((35, 16, 3, 3)).astype("float32")
    kernel[:, 0] = 6e4  # Winograd's transform makes more of it
    ends = (
        [made.value("x", made.FLOAT, 1, 16, 16, 16)],
        [made.value("y", made.FLOAT, 1, 35, 14, 14)],
    )
    mod = selfbyoc.from_onnx(
        made.model([("Conv", ["x", "a/b\x1b"], "y", {})], *ends, **{"a/b\x1b": kernel})
    )
    assert said_of(mod).startswith("weights: a/b\\x1b, the weight of conv2d at conv2d")


@pytest.mark.parametrize("weights", ["float16", "int4", "int8"])
def test_outputs_are_named_as_in_the_onnx_file(weights):
    made = pytest.importorskip("onnx_models")
    w = RNG.standard_normal((33, 64)).astype("float32")
    ends = [made.value("x", made.FLOAT, 5, 33)], [made.value("scores/0", made.FLOAT, 5, 64)]
    mod = selfbyoc.from_onnx(made.model([("MatMul", ["x", "w"], "scores/0", {})], *ends, w=w))
    names = [[each[0] for each in selfbyoc.build(mod, weights=how).outputs]
             for how in ("float32", weights)]  # fmt: skip
    assert names == [["scores/0"]] * 2


def test_it_is_named_as_in_pytorch():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(33, 17), torch.nn.ReLU(), torch.nn.Linear(17, 9))
    with torch.no_grad():
        net[2].weight[3, 4] = -7e4
    mod = selfbyoc.from_torch(net.eval(), [torch.zeros(5, 33)])
    assert said_of(mod).startswith("weights: 2.weight, the weight of dense at bias_add_1")


def test_every_number_of_float16(tmp_path):
    """Through the file, as a table of a sum: all 65536, what is below the normal ones as well."""
    with np.errstate(invalid="ignore"):
        table = np.arange(1 << 16, dtype="uint16").view("float16").astype("float32")
    shapes = {"x": ((1 << 16,), "float32"), "t": ((1 << 16,), "float32")}
    mod = emit(lambda x, t: op.add(x, t), shapes, {"t": table})
    sizes = []
    for weights in ("float32", "float16"):
        selfbyoc.build(mod, weights=weights).export_library(tmp_path / f"{weights}.so")
        sizes.append((tmp_path / f"{weights}.so").stat().st_size)
    (found,) = selfbyoc.load(tmp_path / "float16.so")(np.full(1 << 16, -0.0, "float32"))
    np.testing.assert_array_equal(found, table)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(table))
    assert 110_000 < sizes[0] - sizes[1] < 140_000


def tensor(array, code=2):
    """As TVM writes one."""
    header = np.array([0xDD5E40F096B4A13F, 0], "u8").tobytes()
    header += np.array([1, 0, array.ndim], "i4").tobytes()
    header += bytes([code, 8 * array.itemsize, 1, 0])
    return header + np.array([*array.shape, array.nbytes], "i8").tobytes() + array.tobytes()


def test_pieces():
    good, odd = half(RNG.standard_normal((3, 700)).astype("f4")), RNG.random(2000, "f4")
    whole = tensor(good)
    lies = bytearray(tensor(good))  # its extents promise more than there is
    lies[28:36] = np.array([1 << 40], "i8").tobytes()
    image = b"12345" + whole + tensor(odd) + tensor(good[:1, :9]) + tensor(good, 0)
    image += bytes(lies) + tensor(good)[:30] + whole + tensor(good)[:8]
    pieces = list(split(image))
    assert [p.elements for p in pieces] == [0, 2100, 0, 2100, 0]
    wide = [np.frombuffer(p.data, "f2").astype("f4") if p.elements else p.data for p in pieces]
    assert b"".join(wide) == image
    assert list(split(b"")) == []
    assert [p.data for p in split(b"abc")] == [b"abc"]


@pytest.fixture(scope="module")
def module(tmp_path_factory, files):
    path = tmp_path_factory.mktemp("model") / "net.json"
    path.write_text(tvm.ir.save_json(emitted(dense, DENSE, files[1])))
    return path


def test_the_command(module, files, capsys):
    folder, given = files
    path = module.with_name("net.so")
    assert main(["compile", str(module), "-o", str(path), "--weights", "float16"]) == 0
    for file, said in ((path, True), (folder / "float32.so", False)):
        capsys.readouterr()
        assert main(["show", str(file)]) == 0
        text = "weights: float16 in the file, float32 when computing"
        assert (text in capsys.readouterr().out) == said
    np.testing.assert_array_equal(
        selfbyoc.load(path)(given["x"])[0], selfbyoc.load(folder / "float16.so")(given["x"])[0]
    )
    with pytest.raises(SystemExit) as ended:
        main(["compile", str(module), "--weights", "int3"])
    assert ended.value.code == 2


@pytest.mark.skipif(GENERATION == "relay", reason="Relay has no bfloat16")
@pytest.mark.parametrize("cpu", ["", "llvm -mcpu=haswell"])
def test_weights_of_bfloat16(cpu, tmp_path):
    """What is multiplied by them is rounded where the CPU multiplies words of two, and only there;
    the weight is half as large in memory and in the file.
    """
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    target, given = cpu or selfbyoc.host_target(), arrays(DENSE)
    library = selfbyoc.build(emitted(dense, DENSE, given), target, weights="bfloat16")
    assert library.report.counts == {"dense": 1}
    weight = given["w"].astype(bfloat16).astype("float32")
    wanted = dense_in_numpy(given["x"], weight, given["b"])
    multiplies = machine(target).products_of_bfloat16
    slack = 2.0**-8 * 333**0.5 * 4 if multiplies else 0.0
    (found,) = library(given["x"])
    assert difference(found, wanted, "float32", 333, slack) is None
    rounded = dense_in_numpy(given["x"].astype(bfloat16).astype("float32"), weight, given["b"])
    assert not multiplies or difference(found, rounded, "float32", 333) is None
    library.export_library(tmp_path / "bfloat16.so")
    np.testing.assert_array_equal(selfbyoc.load(tmp_path / "bfloat16.so")(given["x"])[0], found)


@pytest.mark.skipif(GENERATION == "relax", reason="Relax has it")
def test_bfloat16_needs_relax():
    with pytest.raises(InputError, match="weights: bfloat16 needs Relax"):
        selfbyoc.build(emitted(dense, DENSE, arrays(DENSE)), weights="bfloat16")
