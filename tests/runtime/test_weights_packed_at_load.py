"""Weights that a file holds as the model does, and packs while it is loaded."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, emit, op
from selfbyoc.errors import DamagedFile
from selfbyoc.partition.packings import packings_of
from selfbyoc.runtime.exporting import files
from selfbyoc.runtime.file_weights.unpacked import made_of
from selfbyoc.tvm import GENERATION, make_target, te, tensor, tir

RNG = np.random.default_rng(41)
W = RNG.standard_normal((32, 32, 3, 3), np.float32)
X = RNG.standard_normal((1, 32, 56, 56), np.float32)


def conv(x, w):
    return op.conv2d(x, w, padding=(1, 1))


def emitted(program, given, x=X):
    shapes = {n: (array.shape, str(array.dtype)) for n, array in {"x": x, **given}.items()}
    return emit(program, shapes, given)


def made_in(library, tmp_path):
    """The table of a file's weights, and those that are made when it is loaded."""
    table = files.apart(library.native, library._lowered)[1]
    return table, made_of(table, library._packings, library.target, tmp_path)[0]


def saved(library, tmp_path, name="model.so", **how):
    path = tmp_path / name
    library.export_library(path, **how)
    return path


def count(path, values):
    return path.read_bytes().count(np.ascontiguousarray(values).tobytes())


def python(program, *arguments):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def library():
    return selfbyoc.build(emitted(conv, {"w": W}))


@pytest.fixture(scope="module")
def both(library, tmp_path_factory):
    """A file that packs its weight, and one that holds it packed."""
    folder = tmp_path_factory.mktemp("both")
    return saved(library, folder), saved(library, folder, "packed.so", packed=True)


def test_the_file_holds_the_original_once_and_nothing_packed(library, both, tmp_path):
    small, large = both
    table, (made,) = made_in(library, tmp_path)
    packed = table.weights[made.weight].values
    assert packed.nbytes > 1.7 * W.nbytes
    assert (count(small, W), count(small, packed)) == (1, 0)
    assert (count(large, W), count(large, packed)) == (0, 1)
    assert small.stat().st_size < large.stat().st_size - (packed.nbytes - W.nbytes) // 2


def test_results_are_the_same_to_the_bit(library, both):
    expected = library(X)[0]
    for path in both:
        np.testing.assert_array_equal(selfbyoc.load(path)(X)[0], expected)


def test_threads_that_call_first_at_once(library, both):
    loaded, ready, results = selfbyoc.load(both[0]), threading.Barrier(4), []

    def call():
        ready.wait()
        results.append(loaded(X)[0])

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = library(X)[0]
    assert len(results) == 4
    assert all(np.array_equal(found, expected) for found in results)


LOADED_AT_ONCE = """
import sys, threading, numpy as np, selfbyoc
x, ready, found = np.load(sys.argv[2]), threading.Barrier(4), []
def load():
    ready.wait()
    found.append(selfbyoc.load(sys.argv[1])(x)[0])
threads = [threading.Thread(target=load) for _ in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(len(found), all(np.array_equal(each, np.load(sys.argv[3])) for each in found))
print("tvm" in sys.modules)
"""


def test_threads_that_load_it_at_once(library, both, tmp_path):
    """Without TVM's compiler."""
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", library(X)[0])
    done = python(LOADED_AT_ONCE, both[0], tmp_path / "x.npy", tmp_path / "y.npy")
    assert done.stdout.split() == ["4", "True", "False"], done.stderr


WITH_TVM_ALONE = """
import sys, numpy as np, tvm
x, y = np.load(sys.argv[2]), np.load(sys.argv[3])
module = tvm.runtime.load_module(sys.argv[1])
if hasattr(tvm, "relay"):
    from tvm.contrib.graph_executor import GraphModule
    run = GraphModule(module["default"](tvm.cpu()))
    run.run(x=x)
    found = run.get_output(0).numpy()
else:
    from tvm import relax
    machine = relax.VirtualMachine(module, tvm.cpu())
    found = machine["main"](tvm.runtime.tensor(x))
    found = (found if hasattr(found, "numpy") else found[0]).numpy()
print(np.array_equal(found, y), "selfbyoc" in sys.modules)
"""


def test_tvm_alone_runs_it(library, both, tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", library(X)[0])
    done = python(WITH_TVM_ALONE, both[0], tmp_path / "x.npy", tmp_path / "y.npy")
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_two_files_of_one_model_with_other_weights(library, both, tmp_path):
    """What packs them has the same name in both."""
    other = selfbyoc.build(emitted(conv, {"w": 2 * W}))
    one, two = selfbyoc.load(both[0]), selfbyoc.load(saved(other, tmp_path))
    np.testing.assert_array_equal(one(X)[0], library(X)[0])
    np.testing.assert_array_equal(two(X)[0], other(X)[0])


def test_one_weight_of_two_kernels_is_packed_once(tmp_path):
    def program(x, w):
        return conv(op.relu(op.max_pool2d(conv(x, w), pool_size=(2, 2), strides=(2, 2))), w)

    library = selfbyoc.build(emitted(program, {"w": W}))
    table, made = made_in(library, tmp_path)
    assert len(table.stubs) >= 2
    assert len(made) == len({each.original for each in made}) == 1
    path = saved(library, tmp_path)
    assert count(path, W) == 1
    np.testing.assert_array_equal(selfbyoc.load(path)(X)[0], library(X)[0])


def test_a_weight_that_another_kernel_reads_too(tmp_path):
    """At a stride of 2 it is no Winograd convolution, and has another layout of the same size."""

    def program(x, w):
        return op.conv2d(conv(x, w), w, strides=(2, 2), padding=(1, 1))

    w = RNG.standard_normal((64, 64, 3, 3), np.float32)
    x = RNG.standard_normal((1, 64, 28, 28), np.float32)
    library = selfbyoc.build(emitted(program, {"w": w}, x))
    table, made = made_in(library, tmp_path)
    assert len(made) == 2, [each.shape for each in table.weights]
    path = saved(library, tmp_path)
    for each in made:
        assert count(path, table.weights[each.weight].values) == 0
    assert count(path, w) == 1
    np.testing.assert_array_equal(selfbyoc.load(path)(x)[0], library(x)[0])


def test_an_original_that_is_a_result_too(tmp_path):
    library = selfbyoc.build(emitted(lambda x, w: (conv(x, w), w), {"w": W}))
    for found, expected in zip(selfbyoc.load(saved(library, tmp_path))(X), library(X), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("channels", [(20, 36), (48, 17)])
def test_channels_that_are_no_whole_blocks(channels, tmp_path):
    w = RNG.standard_normal((*channels, 3, 3), np.float32)
    x = RNG.standard_normal((2, channels[1], 57, 61), np.float32)
    library = selfbyoc.build(emitted(conv, {"w": w}, x))
    loaded = selfbyoc.load(saved(library, tmp_path))
    np.testing.assert_array_equal(loaded(x)[0], library(x)[0])


def test_a_weight_that_is_transposed_first(tmp_path):
    """[H, W, I, O] in the model."""
    w = np.ascontiguousarray(W.transpose(2, 3, 1, 0))

    def program(x, w):
        return conv(x, op.transpose(w, axes=(3, 2, 0, 1)))

    library = selfbyoc.build(emitted(program, {"w": w}))
    np.testing.assert_array_equal(selfbyoc.load(saved(library, tmp_path))(X)[0], library(X)[0])


def test_halves_stay_packed(tmp_path):
    library = selfbyoc.build(emitted(conv, {"w": W}), weights="float16")
    assert made_in(library, tmp_path)[1] == []  # the packed one was rounded
    loaded = selfbyoc.load(saved(library, tmp_path))
    np.testing.assert_array_equal(loaded(X)[0], library(X)[0])


def test_layouts_alone_are_packed_ahead(tmp_path):
    """A dense layer's weight has the same size packed."""
    w = RNG.standard_normal((64, 48), np.float32)
    x = RNG.standard_normal((5, 48), np.float32)
    mod = selfbyoc.partition_for_tefuse(emitted(lambda x, w: op.dense(x, w), {"w": w}, x))
    assert packings_of(mod, selfbyoc.host_target()) == {}


def test_what_cannot_be_compared_here_stays_packed(library, tmp_path):
    table = files.apart(library.native, library._lowered)[1]
    arm = make_target("llvm -mtriple=aarch64-linux-gnu")
    assert made_of(table, library._packings, arm, tmp_path) == ([], [])


def test_a_packing_that_makes_something_else_is_not_taken(library, tmp_path):
    table = files.apart(library.native, library._lowered)[1]
    (packing,) = library._packings.values()
    wrong = {key: type(packing)(tensor(2 * W), 0, packing.function) for key in library._packings}
    assert made_of(table, wrong, library.target, tmp_path) == ([], [])


def with_sums(weight):
    """[units, in] -> the weight, and its sum in as many columns more."""
    units, inner = (int(extent) for extent in weight.shape)
    k = te.reduce_axis((0, inner), name="k")
    total = te.compute((units,), lambda u: te.sum(weight(u, k), axis=k), name="total")

    def element(u, i):
        return tir.if_then_else(i < inner, weight(u, tir.min(i, inner - 1)), total(u))

    return te.compute((units, 2 * inner), element, name="packed")


def dense_and_sum(ins, call):
    """`dense` and the sum of the weight."""
    x, weight = ins
    inner = int(x.shape[1])
    k = te.reduce_axis((0, inner), name="k")

    def element(n, u):
        return te.sum(x(n, k) * weight(u, k) + weight(u, inner + k), axis=k)

    return te.compute(call.outputs[0].shape, element, name=call.name)


def test_a_pack_of_the_users_own(tmp_path):
    w = RNG.standard_normal((200, 130), np.float32)
    x = RNG.standard_normal((3, 130), np.float32)
    own = Composite(
        "summed_dense", lambda x, w: op.dense(x, w), compute={"dense": dense_and_sum},
        pack={"w": with_sums},
    )  # fmt: skip
    mod = emitted(lambda x, w: op.dense(x, w), {"w": w}, x)
    library = selfbyoc.build(mod, composites=[own])
    assert library.report.counts == {"summed_dense": 1}
    table, (made,) = made_in(library, tmp_path)
    assert table.weights[made.weight].shape == (200, 260)
    path = saved(library, tmp_path)
    assert (count(path, w), count(path, table.weights[made.weight].values)) == (1, 0)
    np.testing.assert_array_equal(selfbyoc.load(path)(x)[0], library(x)[0])


def test_levels_become_words(tmp_path):
    """A byte of the model is two in memory, where products are of words."""
    w = RNG.integers(-128, 128, (64, 64, 3, 3)).astype("int8")
    x = RNG.integers(0, 256, (1, 64, 28, 28)).astype("uint8")

    def program(x, w):
        return conv(op.dequantize(x, 2.0**-4, 131), op.dequantize(w, 2.0**-7, 0))

    library = selfbyoc.build(emitted(program, {"w": w}, x), make_target("llvm -mcpu=haswell"))
    assert library.report.counts == {"conv2d_int8": 1}
    table, made = made_in(library, tmp_path)
    assert [table.weights[each.original].values.nbytes for each in made] == [w.nbytes]
    path = saved(library, tmp_path)
    assert count(path, w) == 1
    np.testing.assert_array_equal(selfbyoc.load(path)(x)[0], library(x)[0])


def test_a_damaged_original_is_refused(both, tmp_path):
    path, data = tmp_path / "damaged.so", bytearray(both[0].read_bytes())
    data[data.index(W.tobytes()) + 100] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFile, match="checksum"):
        selfbyoc.load(path)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's open sizes run on its virtual machine")
def test_open_sizes(tmp_path):
    shapes = {"x": ((tir.Var("n", "int64"), *X.shape[1:]), "float32"), "w": (W.shape, "float32")}
    library = selfbyoc.build(emit(conv, shapes, {"w": W}))
    assert made_in(library, tmp_path)[1]
    loaded = selfbyoc.load(saved(library, tmp_path))
    for batch in (1, 2, 3):
        x = RNG.standard_normal((batch, *X.shape[1:]), np.float32)
        np.testing.assert_array_equal(loaded(x)[0], library(x)[0])


MAPPED = """
import re, sys, numpy as np, selfbyoc
library = selfbyoc.load(sys.argv[1])
library(np.ones((1, 256, 28, 28), "float32"))
text = open("/proc/self/smaps").read()
parts = re.findall(r"^[0-9a-f]+-.*?(?=^[0-9a-f]+-|\\\\Z)", text, re.M | re.S)
of_file = [part for part in parts if sys.argv[1] in part.splitlines()[0]]
print(sum(int(re.search(r"Rss: +(\\\\d+)", part)[1]) for part in of_file) >> 10)
status = dict(line.split(":") for line in open("/proc/self/status") if ":" in line)
print(int(status["RssAnon"].split()[0]) >> 10)
"""


def test_memory_holds_it_packed_and_not_the_original(tmp_path):
    """Four weights of 2.4 MB, 9.4 packed; scratch memory is given back."""
    names = ["a", "b", "c", "d"]
    given = {name: RNG.standard_normal((256, 256, 3, 3), np.float32) for name in names}

    def program(x, a, b, c, d):
        return conv(conv(conv(conv(x, a), b), c), d)

    x = np.ones((1, 256, 28, 28), np.float32)
    library = selfbyoc.build(emitted(program, given, x))
    table, made = made_in(library, tmp_path)
    packed = sum(table.weights[each.weight].values.nbytes for each in made) / 2**20
    assert len(made) == 4
    sizes = {}
    for name, how in (("small.so", False), ("large.so", True)):
        path = saved(library, tmp_path, name, packed=how)
        done = python(MAPPED.replace("\\\\", "\\"), path)
        sizes[name] = [*map(int, done.stdout.split())]
        assert len(sizes[name]) == 2, done.stderr
    (mapped, own), (mapped_packed, own_packed) = sizes["small.so"], sizes["large.so"]
    assert mapped_packed >= packed
    assert mapped < 4
    assert own - own_packed < packed + 4


NO_MEMORY = """
import resource, sys, selfbyoc
selfbyoc.load(sys.argv[2])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[3]), -1))
try:
    selfbyoc.load(sys.argv[1])
    print("loaded")
except selfbyoc.errors.InputError as error:
    print("cannot be loaded" in str(error))
"""


def test_no_memory_to_pack_into_is_an_error(tmp_path):
    """32 MB of packed weights; the file has 2 MB."""
    w = RNG.standard_normal((512, 512, 3, 3), np.float32)
    x = np.ones((1, 512, 14, 14), np.float32)
    library = selfbyoc.build(emitted(conv, {"w": w}, x))
    small = selfbyoc.build(emitted(conv, {"w": W}))
    paths = [saved(library, tmp_path, "large.so"), saved(small, tmp_path, "small.so")]
    done = python(NO_MEMORY, *paths, paths[0].stat().st_size + (24 << 20))
    assert done.stdout.split() == ["True"], done.stdout + done.stderr
