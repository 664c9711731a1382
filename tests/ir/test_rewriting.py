"""Rewritings that are said once: ir/rewriting.py, on the generation at hand."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.ir.generation import ir, rewritten
from selfbyoc.ir.rewriting import as_it_was, cast, dtype, is_known, size_one
from selfbyoc.partition.generation import ir as partitioner
from selfbyoc.runtime.tolerance import first_wrong


def prepared(program, shapes, **constants):
    return partitioner.prepare(emit(program, shapes, constants), None)


def kinds(mod):
    return [call.kind for call in ir.read_as_written(mod["main"]).graph.ops]


def assert_near(found, wanted):
    (array,) = found if isinstance(found, list) else [found]
    assert first_wrong(array, wanted, "float32", 1) is None


def test_the_example_of_its_docstring():
    def without_casts(made, to):
        is_same = made.kind == "cast" and dtype(to, made.args[0]) == made.attrs["dtype"]
        return made.args[0] if is_same else None

    mod = prepared(lambda x: op.relu(op.cast(op.relu(x), dtype="float32")), {"x": (3, 5)})
    assert kinds(rewritten(mod, without_casts)).count("cast") == 0


def test_what_changes_nothing_gives_the_module_itself():
    mod = prepared(lambda x: op.relu(x), {"x": (3, 5)})
    assert rewritten(mod, lambda made, to: None).same_as(mod)


def test_ops_are_asked_for_inputs_first_and_written_over_what_they_became():
    seen = []

    def doubled(made, to):
        seen.append(made.kind)
        if made.kind != "relu":
            return None
        assert is_known(to.shape(made.args[0]))
        return to.emit("add", *[to.again(made, made.args)] * 2)

    def program(x):
        return op.tanh(op.relu(op.sigmoid(x)))

    mod = prepared(program, {"x": (2, 7)})
    done = rewritten(mod, doubled)
    assert seen == ["sigmoid", "relu", "tanh"]
    assert kinds(done) == ["sigmoid", "relu", "add", "tanh"]
    x = np.random.default_rng(0).standard_normal((2, 7)).astype("float32")
    wanted = np.tanh(2 / (1 + np.exp(-x.astype("float64"))))
    assert_near(selfbyoc.build(done)(x=x), wanted)


def test_constants_are_read_and_written():
    weight = np.arange(15, dtype="float32").reshape(3, 5)

    def negated(made, to):
        array = to.array(made.args[1]) if made.kind == "add" else None
        assert not size_one(to, made.args[0])
        return None if array is None else to.again(made, [made.args[0], to.constant(-array)])

    mod = prepared(lambda x, w: op.add(x, w), {"x": (3, 5)}, w=weight)
    x = np.ones((3, 5), "float32")
    assert_near(selfbyoc.build(rewritten(mod, negated))(x=x), x - weight)


@pytest.mark.parametrize("several", [False, True])
def test_results_keep_their_types_where_that_is_asked_for(several):
    def program(x):
        y = op.relu(x)
        return (y, op.tanh(y)) if several else y

    def of_doubles(made, to):
        return to.again(made, [cast(to, made.args[0], "float64")])

    mod = prepared(program, {"x": (4, 3)})
    done = rewritten(mod, of_doubles, keeps_types=True)
    types = [(value.shape, value.dtype) for value in ir.results(done["main"])]
    assert types == [((4, 3), "float32")] * (1 + several)
    assert "cast" in kinds(done)


def test_a_value_of_its_own_dtypes_is_left_alone():
    def check(made, to):
        assert as_it_was(to, made.given[0], made.args[0]) is made.args[0]

    rewritten(prepared(lambda x: op.relu(x), {"x": (3,)}), check)
