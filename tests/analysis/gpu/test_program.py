"""How `analysis/gpu/cuda.py` gives a GPU its kernels and memory: on a CuPy of NumPy's arrays, whose
kernels are planted.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from matrix_cells import smallest
from on_gpu import HERE

import selfbyoc
from selfbyoc.analysis.gpu import cuda
from selfbyoc.analysis.gpu.cases import made
from selfbyoc.analysis.guards import POISON, Overrun
from selfbyoc.errors import LoweringError, MissingExtra
from selfbyoc.tvm import make_target

SOFTMAX = next(c for c in HERE if c.name == "softmax")


class Memory(np.ndarray):
    """An array as CuPy's: bytes go in and out by name."""

    def set(self, given):
        self[...] = given

    def get(self):
        return np.array(self)


class Broken(Exception):
    """What a compiler or a driver raises."""


@pytest.fixture
def planted(monkeypatch):
    """A CuPy whose only kernel is given; -> what it was told."""
    told = []

    def plant(kernel):
        def get_function(name):
            def launch(grid, block, args):
                told.append((name, grid, block))
                kernel(*args)

            return launch

        def compiled(code, options):
            told.append(("compiled", code, options))
            return b"binary", None

        module = SimpleNamespace(load=told.append, get_function=get_function)
        fake = SimpleNamespace(
            full=lambda size, value, dtype: np.full(size, value, dtype).view(Memory),
            cuda=SimpleNamespace(
                compiler=SimpleNamespace(CompileException=Broken, compile_using_nvrtc=compiled),
                driver=SimpleNamespace(CUDADriverError=Broken),
                function=SimpleNamespace(Module=lambda: module),
                runtime=SimpleNamespace(deviceSynchronize=lambda: None),
            ),
        )
        monkeypatch.setitem(sys.modules, "cupy", fake)
        return told

    return plant


def lowered():
    (kernel,) = made(SOFTMAX, smallest(SOFTMAX), make_target({"kind": "cuda", "arch": "sm_90"}))
    return kernel.lowered


def program():
    return cuda.Program(lowered())


def in_order(given):
    """A launch's arguments as the function has them: x, then the result."""
    (launch,) = lowered().launches
    return [given[launch.memory.index(n)] for n in range(2)]


def arrays():
    (shape, dtype), *_ = smallest(SOFTMAX).args.values()
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    return x, np.full(shape, np.nan, dtype)


def test_memory_goes_there_and_comes_back(planted):
    def double(*given):
        x, y = in_order(given)
        y[...] = (x.view("float32") * 2).view("uint8")

    told, made = planted(double), program()
    x, y = arrays()
    before = x.copy()
    made(x, y)
    np.testing.assert_array_equal(y, before * 2)
    np.testing.assert_array_equal(x, before)
    (launch,) = made.made.launches
    (compiled, code, options), binary, run = told
    assert binary == b"binary"
    assert (compiled, code) == ("compiled", made.made.source)
    assert "-std=c++17" in options
    assert run == (launch.name, launch.grid, launch.block)


@pytest.mark.parametrize("argument", [0, 1])
@pytest.mark.parametrize("place", [-1, 0])
def test_a_write_beside_an_array(planted, argument, place):
    """Before it, and after it."""

    def beside(*given):
        inner = in_order(given)[argument]
        whole = inner.base
        at = 0 if place == 0 else len(whole) - 1
        assert len(whole) > len(inner)
        whole[at] = 1

    planted(beside)
    made = program()
    with pytest.raises(Overrun, match=f"it wrote outside argument {argument}, on the GPU"):
        made(*arrays())


def test_what_is_not_written_is_nan(planted):
    planted(lambda *_: None)
    x, y = arrays()
    y[...] = 3.0
    y.reshape(-1).view("uint8")[...] = POISON
    program()(x, y)
    assert np.isnan(y).all()


def test_what_does_not_compile(planted):
    planted(lambda *_: None)

    def refuse(code, options):
        raise Broken("kernel.cu(3): error: x")

    sys.modules["cupy"].cuda.compiler.compile_using_nvrtc = refuse
    with pytest.raises(
        LoweringError, match=r"CUDA does not compile it: .*kernel.cu\(3\): error: x"
    ):
        program()


def test_without_cupy(monkeypatch):
    monkeypatch.setattr(cuda, "_is_installed", lambda: False)
    with pytest.raises(
        MissingExtra, match=r"CuPy is not installed: pip install 'cupy-cuda12x\[ctk\]'"
    ):
        cuda.serving()
    mod = selfbyoc.emit(SOFTMAX.pattern, smallest(SOFTMAX).args)
    found = selfbyoc.verify(mod, target="cuda", composites=[SOFTMAX])
    assert found.ran_by == ""
    assert "CuPy is not installed" in str(found)


def test_a_device_says_what_it_is():
    device = cuda.Device("NVIDIA H200", "sm_90", 13010)
    assert str(device) == "NVIDIA H200 (sm_90), CUDA 13.1"
    assert device.target == {"kind": "cuda", "arch": "sm_90"}
