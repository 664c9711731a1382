"""An unrolled recurrent network as PyTorch's exporter writes it: each step takes its slice."""

import numpy as np
from tvm import relax

import selfbyoc
from selfbyoc import host_target, partition_for_tefuse, report
from selfbyoc.ir.generation import ir
from selfbyoc.partition import relax as marking
from selfbyoc.partition.select import select
from selfbyoc.transform import ScheduleRest
from selfbyoc.tvm import tensor, tir, walk

HIDDEN = 16


def weights():
    rng = np.random.default_rng(5)
    return (0.4 * rng.standard_normal((HIDDEN, HIDDEN))).astype("float32")


def gru(count):
    """h = z * (h - n) + n for each row of x."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((count, 1, HIDDEN), "float32"))
    r = relax.const(tensor(weights()))
    with builder.function("main", [x]):
        with builder.dataflow():
            h = builder.emit(relax.op.zeros((1, HIDDEN), "float32"))
            for step in range(count):
                row = builder.emit(relax.op.strided_slice(x, [0], [step], [step + 1]))
                row = builder.emit(relax.op.squeeze(row, axis=[0]))
                product = builder.emit(relax.op.matmul(h, relax.op.permute_dims(r)))
                z = builder.emit(relax.op.sigmoid(relax.op.add(product, row)))
                n = builder.emit(relax.op.tanh(relax.op.add(row, relax.op.multiply(z, product))))
                moved = builder.emit(relax.op.multiply(z, relax.op.subtract(h, n)))
                h = builder.emit(relax.op.add(moved, n))
            out = builder.emit_output(h)
        builder.emit_func_output(out)
    return builder.get()


def expected(x):
    h, r = np.zeros((1, HIDDEN)), weights().astype("float64")
    for row in x.astype("float64"):
        product = h @ r.T
        z = 1 / (1 + np.exp(-(product + row)))
        n = np.tanh(row + z * product)
        h = z * (h - n) + n
    return h


def test_the_steps_are_one_function():
    parted = partition_for_tefuse(gru(12))
    symbols = {record.symbol for record in report(parted).matched}
    # The first step's product is of zeros, and computed ahead; the second's reads a sum with them.
    assert (report(parted).counts, len(symbols)) == ({"dense": 11}, 2)
    done = ScheduleRest(host_target())(relax.transform.RunCodegen()(parted))
    kinds = [gv.name_hint for gv, f in done.functions.items() if isinstance(f, tir.PrimFunc)]
    assert sum("strided_slice" in name for name in kinds) == 12
    assert sum("tanh" in name for name in kinds) <= 2, "one step's function is not another's"
    x = np.random.default_rng(0).standard_normal((12, 1, HIDDEN)).astype("float32")
    (found,) = selfbyoc.build(parted)(x)
    np.testing.assert_allclose(found, expected(x), rtol=1e-4, atol=1e-5)


def test_few_slices_stay_where_they_are_read():
    parted = partition_for_tefuse(gru(3))
    done = ScheduleRest(host_target())(relax.transform.RunCodegen()(parted))
    assert not [gv for gv in done.get_global_vars() if gv.name_hint.startswith("strided_slice")]


def test_a_run_of_equal_matches_is_one_row_of_tvms_table():
    """TVM goes through the module for each row: one for each match would be quadratic."""
    rows = []
    for count in (4, 12):
        mod = marking.prepare(gru(count), {})
        matches, _ = select(ir.read(mod["main"]), selfbyoc.BUILTIN)
        rows.append(len(marking.fusion_table(mod, matches).rows))
    assert rows[0] == rows[1] < 3


def test_a_long_expression_is_not_written_out_at_every_read():
    """The candidate's tanh reads its argument, with a sigmoid in it, 19 times."""
    done = ScheduleRest(host_target())(relax.transform.RunCodegen()(gru(2)))
    sizes = []
    for func in done.functions.values():
        if isinstance(func, tir.PrimFunc):
            nodes = []
            walk(func.body, nodes.append)
            sizes.append(len(nodes))
    assert max(sizes) < 10_000
