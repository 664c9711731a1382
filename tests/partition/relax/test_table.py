"""FuseOpsByPattern's table: a row for each pattern, and each match marked as it was chosen."""

import pytest
from harness import assert_close, run_case
from tvm import relax

import selfbyoc
from selfbyoc import Case, Composite, op, partition_for_tefuse, report
from selfbyoc.ir.generation import ir as reader
from selfbyoc.partition import relax as ir
from selfbyoc.partition.relax.order import by_group
from selfbyoc.partition.relax.table import fusion_table
from selfbyoc.partition.select import select
from selfbyoc.tvm import tvm

PAIR = Composite("pair", lambda x: op.exp(op.tanh(x)))
ONE = Composite("one", lambda x: op.tanh(x))
SIZE = Composite("size", lambda x: op.abs(x))
SUM = Composite("sum", lambda x, y: op.relu(op.add(x, y)))
X = (3, 5)


def table_of(mod, composites):
    mod = ir.prepare(mod, {})
    matches, _ = select(reader.read(mod["main"]), composites)
    return fusion_table(mod, matches), matches


def ops_of(parted):
    """Root of each match -> the ops of the function that the report names for it."""
    by_symbol = {
        str(f.attrs["global_symbol"]): reader.read(f, raw=True)
        for f in ir.external_functions(parted).values()
    }
    found = report(parted).matched
    return {r.root: [c.kind for c in by_symbol[r.symbol].ops] for r in found}


def chain(count):
    def program(x, y):
        for _ in range(count):
            x = op.relu(op.add(op.tanh(op.exp(op.tanh(x))), y))
        return x

    return program


def test_equal_matches_are_one_row_whatever_lies_between():
    rows = []
    for count in (2, 9):
        table, matches = table_of(selfbyoc.emit(chain(count), {"x": X, "y": X}), [PAIR, SUM, ONE])
        assert len(matches) == 3 * count
        rows.append([name for name, *_ in table.rows])
    assert rows[0] == rows[1] == ["tefuse.pair", "tefuse.one", "tefuse.sum"]


def test_interleaved_matches_are_marked_as_chosen():
    found = run_case(PAIR, Case(chain(4), x=X, y=X), [PAIR, SUM, ONE])
    assert found.counts == {"pair": 4, "sum": 4, "one": 4}
    assert_close(found)


def test_a_row_takes_no_ops_that_belong_to_another_match():
    """`pair` fits where `one` was chosen, and further up than where it was chosen."""
    twice = Composite("twice", lambda x: op.tanh(op.tanh(x)))

    def program(x):
        for _ in range(5):
            x = op.tanh(x)
        return op.exp(x)

    found = run_case(twice, Case(program, x=X), [PAIR, twice])
    assert_close(found)
    parted = partition_for_tefuse(found.mod, composites=[PAIR, twice])
    assert ops_of(parted) == {
        "exp": ["tanh", "exp"],
        "tanh_1": ["tanh", "tanh"],
        "tanh_3": ["tanh", "tanh"],
    }


def test_the_reports_symbol_is_of_the_match():
    """Of two groups that cross: TVM puts a call where the first op of its group was."""
    builder = relax.BlockBuilder()
    x, y = (relax.Var(name, relax.TensorType(X, "float32")) for name in "xy")
    with builder.function("main", [x, y]):
        with builder.dataflow():
            first = builder.emit(relax.op.tanh(x))
            between = builder.emit(relax.op.abs(y))
            last = builder.emit(relax.op.exp(first))
            out = builder.emit_output(relax.Tuple([last, between]))
        builder.emit_func_output(out)
    parted = partition_for_tefuse(builder.get(), composites=[PAIR, SIZE])
    assert ops_of(parted) == {"exp": ["tanh", "exp"], "abs": ["abs"]}


def test_groups_are_sorted_together_after_what_they_read():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(X, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            a = builder.emit(relax.op.tanh(x))
            b = builder.emit(relax.op.exp(x))
            c = builder.emit(relax.op.abs(b))
            d = builder.emit(relax.op.add(a, c))
            e = builder.emit(relax.op.negative(b))
            out = builder.emit_output(relax.op.multiply(d, e))
        builder.emit_func_output(out)
    (block,) = builder.get()["main"].body.blocks
    names = [v.name for v in (a, b, c, d, e, out)]

    def order(groups):
        group_of = {b.var: groups.get(b.var.name) for b in block.bindings}
        done = by_group(block.bindings, {v: g for v, g in group_of.items() if g is not None})
        return "".join("abcdef"[names.index(b.var.name)] for b in done)

    assert order({}) == "abcdef"
    assert order({a.name: 1, d.name: 1}) == "bcadef"
    assert order({b.name: 1, e.name: 1}) == "abecdf"


def test_a_tuple_written_into_two_calls_of_a_match():
    """A row before makes another object of it in each call."""
    both = Composite("both", lambda x, y: op.add(_joined(x, y), op.tanh(_joined(x, y))))
    builder = relax.BlockBuilder()
    x, y = (relax.Var(name, relax.TensorType(X, "float32")) for name in "xy")
    with builder.function("main", [x, y]):
        with builder.dataflow():
            e = builder.emit(relax.op.exp(relax.op.tanh(x)))
            fields = relax.Tuple([e, y])
            one = builder.emit(relax.op.concat(fields, 1))
            other = builder.emit(relax.op.tanh(relax.op.concat(fields, 1)))
            out = builder.emit_output(relax.op.add(one, other))
        builder.emit_func_output(out)
    parted = partition_for_tefuse(builder.get(), composites=[both, PAIR])
    assert report(parted).counts == {"both": 1, "pair": 1}


def _joined(x, y):
    return op.concatenate([x, y], axis=1)


def bound_to(names):
    """tanh of tanh of ... without the first, bound to these names, with types that say less than
    TVM infers.
    """
    builder, ty = relax.BlockBuilder(), relax.TensorType(X, "float32")
    device = relax.global_info.VDevice("llvm")
    x = value = relax.Var("x", relax.TensorType(X, "float32", device))
    bindings = []
    for name in names:
        call = builder.normalize(relax.op.tanh(value))
        value = relax.DataflowVar(name, ty)
        bindings.append(relax.VarBinding(value, call))
    out = relax.Var("out", ty)
    both = relax.op.subtract(value, bindings[0].var)
    bindings.append(relax.VarBinding(out, builder.normalize(both)))
    body = relax.SeqExpr([relax.DataflowBlock(bindings)], out)
    main = relax.Function([x], builder.normalize(body), ty)
    return tvm.IRModule({"main": main.with_attr("global_symbol", "main")})


@pytest.mark.parametrize("names", ["abcde", "aaaaa", "ababa"])
def test_variables_of_any_name_and_of_types_that_say_less(names):
    """TVM infers a device for what reads one, and makes another variable when it does."""
    twice = Composite("twice", lambda x: op.tanh(op.tanh(x)))
    parted = partition_for_tefuse(bound_to(names), composites=[twice])
    pair = ["tanh", "tanh"]
    assert ops_of(parted) == {"tanh_2": pair, "tanh_4": pair}
    (block,) = parted["main"].body.blocks
    outside = [getattr(b.value.op, "name", "kernel") for b in block.bindings]
    assert outside == ["relax.tanh", "kernel", "kernel", "relax.subtract"]


def test_another_function_with_variables_of_the_same_names_stays():
    mod = selfbyoc.emit(chain(1), {"x": X, "y": X})
    mod["other"] = relax.utils.copy_with_new_vars(mod["main"]).with_attr("global_symbol", "other")
    parted = partition_for_tefuse(mod, composites=[PAIR])
    assert report(parted).counts == {"pair": 1}
    values = [b.value for block in parted["other"].body.blocks for b in block.bindings]
    assert not [v for v in values if isinstance(getattr(v, "op", None), tvm.ir.GlobalVar)]
