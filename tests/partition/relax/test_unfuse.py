"""`unfuse` on Relax: calls that share a function, and functions that hold several composites."""

import numpy as np
from packing import fc
from tvm import relax

import selfbyoc
from selfbyoc import Composite, emit, op, partition_for_tefuse, unfuse
from selfbyoc.ir.generation import ir as reader
from selfbyoc.partition import relax as ir
from selfbyoc.partition.original_weights import Unpack
from selfbyoc.partition.relax.table import fusion_table
from selfbyoc.partition.relax.unfuse import unfused
from selfbyoc.partition.select import select
from selfbyoc.tvm import structural_equal, tvm

RNG = np.random.default_rng(11)
WEIGHTS = {n: RNG.standard_normal((24, 24)).astype("float32") for n in ("w1", "w2")}


def program(x, w1, w2):
    return op.exp(op.relu(op.dense(op.relu(op.dense(x, w1)), w2)))


def model():
    return emit(program, {"x": ((5, 24), "float32")}, WEIGHTS)


def prepared(mod):
    return ir.without_item_calls(ir.prepare(mod, None))


def test_one_function_with_two_calls():
    """Each call gets the weight of its own back."""
    parted = partition_for_tefuse(model(), composites=[fc])
    assert len(ir.external_functions(parted)) == 1
    assert structural_equal(unfuse(parted)["main"], prepared(model())["main"])


def test_several_composites_in_one_function():
    """As TVM's MergeCompositeFunctions leaves them."""
    mod = ir.prepare(model(), None)
    matches, _ = select(reader.read(mod["main"]), [fc, Composite("e", lambda x: op.exp(x))])
    table = fusion_table(mod, matches)
    passes = [
        relax.transform.FuseOpsByPattern(table.rows, bind_constants=False),
        relax.transform.MergeCompositeFunctions(),
    ]
    merged = tvm.transform.Sequential(passes)(table.mod)
    names = list(ir.external_functions(merged))
    assert len(names) < len(matches) == 3
    back = unfused(merged, names, Unpack(merged), None)
    assert structural_equal(back["main"], prepared(model())["main"])


def test_equal_ops_share_their_function():
    back = unfuse(partition_for_tefuse(model(), composites=[fc]), separate=True)
    made = {v.name_hint for v, f in back.functions.items() if f.attrs and "Primitive" in f.attrs}
    assert made == {"matmul", "permute_dims", "relu"}
    assert set(selfbyoc.report(back).left) == {"dense", "relu", "exp"}
