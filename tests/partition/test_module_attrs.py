"""Partitioning and verification keep what is written on the module."""

import numpy as np

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.ir.emit import emit
from selfbyoc.partition.generation import ir
from selfbyoc.tvm import module_with_attr

ARGS = {"x": ((5, 33), "float32"), "w": ((19, 33), "float32")}


def test_new_functions_leave_the_attributes_of_the_module():
    w = np.ones((19, 33), "float32")
    composite = Composite("one", lambda x, w: op.relu(op.dense(x, w)))
    mod = emit(lambda x, w: op.relu(op.dense(x, w)), ARGS, {"w": w})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    marked = module_with_attr(parted, "owner", "somebody")
    done = ir.update(marked, dict(ir.external_functions(marked)), {})
    assert str(done.attrs["owner"]) == "somebody"
    assert selfbyoc.report(done) == selfbyoc.report(parted)
