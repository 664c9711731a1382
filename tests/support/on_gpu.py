"""What tests of GPU kernels share: they run as OpenCL on the CPU, or as CUDA on a GPU, in a process
of their own.
"""

import pytest
from harness import model, random_args

from selfbyoc import BUILTIN, verify
from selfbyoc.analysis.gpu.opencl import TARGET
from selfbyoc.language.nodes import Op, reachable
from selfbyoc.ops.cells import GATES
from selfbyoc.tvm import GENERATION, make_target


def _in_steps(composite):
    """Whether it has a recurrent layer, whose steps follow on one another: no kernel of a GPU."""
    nodes = (node for output in composite.outputs for node in reachable(output))
    return any(isinstance(node, Op) and node.kind in GATES for node in nodes)


HERE = [
    c for c in BUILTIN
    if not _in_steps(c) and any(GENERATION in case.generations for case in c.cases)
]  # fmt: skip
# One of each sort; `make gpu-smallest` has them all.
FEW = [
    pytest.param(composite, id=composite.name)
    for composite in HERE
    if composite.name
    in ("attention", "conv2d", "dense_gelu_dense", "layer_norm_dense_int8", "softmax")
]
needs_opencl = pytest.mark.usefixtures("opencl")  # of conftest.py
needs_nvidia = pytest.mark.usefixtures("nvidia")


def verified(composite, case, kinds=None, target=TARGET):
    """A case, built and run as OpenCL or CUDA, against NumPy.

    Never in this process: a runtime's threads would be missing in a later fork, and it would hang.
    """
    mod = model(composite, case, random_args(case))
    return verify(mod, target=make_target(target), composites=[composite], kinds=kinds)
