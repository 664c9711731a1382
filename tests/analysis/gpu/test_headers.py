"""What the CUDA source of the built-in composites includes is looked for, wherever it may lie."""

import re

import pytest
from matrix_cells import smallest
from on_gpu import HERE

from selfbyoc.analysis.gpu import cuda_question, headers, nvrtc_library
from selfbyoc.analysis.gpu.cases import made
from selfbyoc.tvm import make_target

# `cuda.h` is under another condition than NVRTC's; the others lie beside <cuda/std/cstdint>.
ELSEWHERE = {"cuda.h", "cstdint", "type_traits", "cuda/std/type_traits"}


def included(source):
    return set(re.findall(r"#include <(\S+)>", source)) - ELSEWHERE


@pytest.mark.parametrize(
    "composite",
    [pytest.param(c, id=c.name) for c in HERE if c.name in ("inception", "max_pool2d", "softmax")],
)
def test_all_that_is_included_is_looked_for(composite):
    target = make_target({"kind": "cuda", "arch": "sm_90"})
    for kernel in made(composite, smallest(composite), target):  # infinities: of max pools
        assert included(kernel.lowered.source) <= set(headers._INCLUDED)


@pytest.mark.parametrize("question", [cuda_question, nvrtc_library])
def test_whoever_compiles_is_asked_for_all_of_them(question):
    assert included(question.SOURCE) == set(headers._INCLUDED)


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Folders of packages and of a toolkit, by name; -> what is found in them."""

    def plant(*files):
        for file in files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).touch()
        monkeypatch.setattr(headers, "folder_of", lambda name: tmp_path / name.split(".")[1])
        monkeypatch.setattr(headers, "_TOOLKIT", tmp_path / "toolkit")
        headers.headers.cache_clear()
        return [folder.removeprefix(f"{tmp_path}/") for folder in headers.headers()]

    yield plant
    headers.headers.cache_clear()


def test_of_wheels_for_cuda_12(planted):
    found = planted("cuda_cccl/include/cuda/std/cstdint", "cuda_runtime/include/math_constants.h")
    assert found == ["cuda_cccl/include", "cuda_runtime/include"]


def test_of_wheels_for_cuda_13(planted):
    found = planted("cu13/include/cccl/cuda/std/cstdint", "cu13/include/cuda_fp16.h")
    assert found == ["cu13/include/cccl", "cu13/include"]


def test_of_a_toolkit(planted):
    assert planted("toolkit/cccl/cuda/std/cstdint", "toolkit/math_constants.h") == [
        "toolkit/cccl",
        "toolkit",
    ]


def test_none(planted):
    assert planted("cu13/include/other.h") == []
