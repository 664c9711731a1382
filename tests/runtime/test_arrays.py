"""Arrays of several libraries in, results of their kind out, and what a wrong call is told."""

import importlib

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.errors import InputError
from selfbyoc.runtime.alignment import ALIGNED, lies_well
from selfbyoc.runtime.exchange import as_array
from selfbyoc.runtime.executors.generation import executor
from selfbyoc.runtime.library import Session
from selfbyoc.tvm import GENERATION

SHAPES = {"x": ((65, 129), "float32"), "w": ((33, 129), "float32")}
RNG = np.random.default_rng(0)
X, W = (RNG.standard_normal(shape).astype("float32") for shape, _ in SHAPES.values())


@pytest.fixture(scope="module")
def library():
    parted = selfbyoc.partition_for_tefuse(emit(lambda x, w: op.relu(op.dense(x, w)), SHAPES))
    assert selfbyoc.report(parted).counts == {"dense": 1}
    return selfbyoc.build(parted)


def aligned(array, offset=0):
    """The same in memory that begins `offset` bytes after a multiple of 64."""
    room = np.zeros(array.nbytes + ALIGNED + offset, "uint8")
    start = -room.ctypes.data % ALIGNED + offset
    found = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[:] = array
    return found


class Exporter:
    """A library of its own, which knows DLPack and no more."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.where = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.where


def kinds():
    yield "a list", lambda a: a.tolist(), "float64"
    yield "an array", lambda a: a, ""
    yield "aligned", aligned, ""
    yield "not aligned", lambda a: aligned(a, 4), ""
    yield "read-only", lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape), ""
    yield "in another order", np.asfortranarray, ""
    yield "TVM", Session.tensor, ""
    yield "DLPack", lambda a: Exporter(aligned(a)), ""


@pytest.mark.parametrize(("make", "dtype"), [k[1:] for k in kinds()], ids=[k[0] for k in kinds()])
def test_kinds_of_inputs(library, make, dtype):
    if dtype:
        with pytest.raises(InputError, match=r"input 'x': expected float32.*found float64"):
            library(make(X), W)
        return
    before = library(X, W)[0]
    np.testing.assert_allclose(before, np.maximum(X @ W.T, 0), rtol=1e-4, atol=1e-4)
    for given in ((make(X), W), (X, make(W)), (make(X), make(W)), (X, W)):
        np.testing.assert_array_equal(library(*given)[0], before)


def test_torch(library):
    torch = pytest.importorskip("torch")
    x, w = torch.tensor(X, requires_grad=True), torch.nn.Parameter(torch.tensor(W))
    plain = library(X, W)[0]
    np.testing.assert_array_equal(library(x, w)[0], plain)
    for found in (library(x, w, results="same")[0], library(X, W, results=torch.from_dlpack)[0]):
        assert isinstance(found, torch.Tensor)
        np.testing.assert_array_equal(found.numpy(), plain)
    out = torch.empty(65, 33)
    (given,) = library(x=x, w=w, out=out)
    assert given is out
    np.testing.assert_array_equal(out.numpy(), plain)


def test_torch_that_has_no_numbers_here(library):
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"input 'w': .* in the CPU's memory, found one on meta"):
        library(X, torch.empty(33, 129, device="meta"))
    with pytest.raises(
        InputError, match=r"out 'output': .* in the CPU's memory, found one on meta"
    ):
        library(X, W, out=torch.empty(65, 33, device="meta"))
    with pytest.raises(InputError, match=r"input 'w': expected .*, found (bfloat|uint)16"):
        library(X, torch.zeros(33, 129, dtype=torch.bfloat16))


@pytest.mark.skipif(GENERATION == "relay", reason="TVM 0.17 has bfloat16 as uint16 in NumPy")
def test_torch_in_bfloat16():
    torch = pytest.importorskip("torch")
    built = selfbyoc.build(emit(lambda x: op.reshape(x, shape=(15,)), {"x": ((3, 5), "bfloat16")}))
    x = torch.arange(15, dtype=torch.bfloat16).reshape(3, 5)
    (found,) = built(x, results="same")
    assert torch.equal(found, x.reshape(15))
    with pytest.raises(InputError, match="found a read-only array"):  # NumPy knows no bfloat16
        built(x, out=torch.empty_like(found))


def test_results_of_tvms_kind(library):
    tensor = Session.tensor
    (found,) = library(tensor(X), tensor(W), results="same")
    assert type(found) is type(tensor(X))
    np.testing.assert_array_equal(found.numpy(), library(X, W)[0])
    (again,) = selfbyoc.build(emit(lambda y: op.exp(y), {"y": ((65, 33), "float32")}))(found)
    np.testing.assert_allclose(again, np.exp(found.numpy()), rtol=1e-5)


def test_bools():
    built = selfbyoc.build(emit(lambda x: op.reshape(x, shape=(15,)), {"x": ((3, 5), "bool")}))
    x = np.arange(15).reshape(3, 5) % 2 == 0
    for given in (x, Session.tensor(x)):
        np.testing.assert_array_equal(built(given)[0], x.reshape(15))


# ---- without a copy


def test_what_lies_well_is_not_copied(library, monkeypatch):
    library(aligned(X, 4), aligned(W, 4))  # both in the library's own memory
    whole = importlib.import_module(
        f"{executor.__name__}{'.full' if GENERATION == 'relay' else ''}"
    )
    shared, road = [], whole.from_dlpack
    monkeypatch.setattr(whole, "from_dlpack", lambda a: shared.append(a) or road(a))
    x, w = aligned(X), aligned(W, 4)
    library(x, w)
    assert [a is x for a in shared] == [True]
    library(Exporter(aligned(X)), w)
    assert len(shared) == 2
    tiny = selfbyoc.build(emit(lambda x: op.relu(x), {"x": ((3, 5), "float32")}))
    tiny(aligned(np.ones((3, 5), "float32")))  # cheaper to copy
    assert len(shared) == 2


def test_shared_memory_may_change_between_calls(library):
    x, other = aligned(X), aligned(X[::-1])
    for values in (X, -X):
        x[:] = values
        for given in (x, other, values, x):
            wanted = np.maximum(np.asarray(given) @ W.T, 0)
            np.testing.assert_allclose(library(given, W)[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("passing", [lambda x: x, lambda x: op.reshape(x, shape=(129, 65))])
def test_a_result_is_never_the_callers_input(passing):
    built, x = selfbyoc.build(emit(passing, {"x": SHAPES["x"]})), aligned(X)
    assert lies_well(x)
    first = built(x)[0]
    x[:] = 0
    np.testing.assert_array_equal(first.ravel(), X.ravel())
    np.testing.assert_array_equal(built(x)[0].ravel(), 0)
    built(x, out=(own := np.ones_like(first)))
    assert not own.any()


# ---- out=


def test_out(library):
    wanted, room = library(X, W)[0], np.zeros((65, 33), "float32")
    for out in (room, [room], (room,), {"output": room}, room[::-1], Session.tensor(room)):
        room[:] = 0
        (found,) = library(X, W, out=out)
        assert found is (out if not isinstance(out, (list, tuple, dict)) else room)
        np.testing.assert_array_equal(as_array(found, "out"), wanted)


def test_out_that_does_not_fit(library):
    good = np.zeros((65, 33), "float32")
    read_only = good.view()
    read_only.flags.writeable = False
    for out, said in (
        (good.T, r"out 'output': expected float32\[65, 33\], found float32\[33, 65\]"),
        (good.astype("float64"), r"out 'output': expected float32\[65, 33\], found float64"),
        ([good, good], r"out: expected 1 output \(output: float32\[65, 33\]\), found 2"),
        ({"outputs": good}, "no output 'outputs'; expected output; did you mean 'output'"),
        (read_only, "out 'output': expected memory to write into, found a read-only array"),
        ([good.tolist()], "out 'output': expected float32"),
        (np.lib.stride_tricks.as_strided(good, strides=(4, 4)), "elements lie apart"),
    ):
        with pytest.raises(InputError, match=said):
            library(X, W, out=out)
    assert not good.any()


def test_out_where_an_input_lies():
    """Results that are an input are read before another one is written there."""
    ways = lambda x: (op.relu(x), op.reshape(x, shape=(129, 65)), op.negative(x))  # noqa: E731
    built, x = selfbyoc.build(emit(ways, {"x": SHAPES["x"]})), aligned(X)
    assert lies_well(x)
    moved, negative = np.empty((129, 65), "float32"), np.empty_like(X)
    built(x, out=[x, moved, negative])
    np.testing.assert_array_equal(x, np.maximum(X, 0))
    np.testing.assert_array_equal(moved, X.reshape(129, 65))
    np.testing.assert_array_equal(negative, -X)
    with pytest.raises(InputError, match="out 'output_2': expected memory of its own, found that"):
        built(x, out=[x, moved, x])
    with pytest.raises(InputError, match="found that of output_0"):
        built(x, out=[x, x.reshape(129, 65), negative])
    halves = np.empty((65, 258), "float32")  # which lie between each other
    built(X, out=[halves[:, ::2], moved, halves[:, 1::2]])
    np.testing.assert_array_equal(halves[:, 1::2], -X)


# ---- what a wrong call is told


def test_wrong_calls(library):
    both = r"expected 2 inputs \(x: float32\[65, 129\], w: float32\[33, 129\]\), found"
    for given, named, said in (
        ((X,), {}, rf"^{both} 1$"),
        ((X, W, X), {}, rf"^{both} 3$"),
        ((), {}, rf"^{both} 0$"),
        ((X,), {"y": W}, r"^no input 'y'; expected x, w$"),
        (({"x": X, "W": W},), {}, r"^no input 'W'; expected x, w"),
        ((X,), {"x": X}, r"^input 'x' is given twice: by position and by name$"),
        ((X, W), {"y": W}, r"^no input 'y'; expected x, w$"),
        (({"x": X, "w": W},), {"w": W}, r"^input 'w' is given twice: in the dict and by name$"),
        ((), {"x": X}, r"^missing: w: float32\[33, 129\]; given: x$"),
        ((X.astype("float64"), W), {}, r"^input 'x': expected float32\[65, 129\], found float64"),
        ((X, W.T), {}, r"^input 'w': expected float32\[33, 129\], found float32\[129, 33\]$"),
        ((X, "w"), {}, r"^input 'w': expected float32\[33, 129\], found <U1\[\]$"),
        ((X, object()), {}, r"^input 'w': expected an array of numbers, found object$"),
        ((X, Exporter(W, (2, 0))), {}, r"^input 'w': expected an array in the CPU's memory, found"
         r" one on DLPack's device 2:0$"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            library(*given, **named)
    with pytest.raises(InputError, match=r"results: expected 'numpy', 'same' or a function .*'x'"):
        library(X, W, results="x")


def test_a_call_with_the_same_name_in_a_dict(library):
    np.testing.assert_array_equal(library({"w": W, "x": X})[0], library(X, W)[0])
    np.testing.assert_array_equal(library({"w": W}, x=X)[0], library(X, W)[0])


def test_an_input_called_out():
    built = selfbyoc.build(emit(lambda out: op.exp(out), {"out": ((3, 5), "float32")}))
    x = np.zeros((3, 5), "float32")
    np.testing.assert_array_equal(built({"out": x})[0], x + 1)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's graph executor runs no open extents")
def test_dynamic_sizes():
    tvm = pytest.importorskip("tvm")
    from tvm import relax

    n = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 5), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    built = selfbyoc.build(builder.get())
    assert built.inputs == (("x", (None, 5), "float32"),)
    assert built.outputs == (("output", (None, 5), "float32"),)
    with pytest.raises(InputError, match=r"expected float32\[dynamic, 5\], found float32\[3, 4\]"):
        built(np.ones((3, 4), "float32"))
    x, good = np.ones((3, 5), "float32"), np.zeros((3, 5), "float32")
    assert built(x, out=good)[0].all()
    with pytest.raises(
        InputError, match=r"out\[0\]: expected float32\[3, 5\], found float32\[1, 5"
    ):
        built(x, out=good[:1])
