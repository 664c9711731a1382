"""A pattern of several last ops side by side: one kernel with a result for each."""

import numpy as np
import pytest
from harness import assert_close, run_case

import selfbyoc
from selfbyoc import Case, Composite, elementwise, emit, op, repeat
from selfbyoc.analysis.kernels import kernels
from selfbyoc.errors import CompositeError
from selfbyoc.ir.generation import ir
from selfbyoc.partition.select import select
from selfbyoc.tvm import te

X, A, B, C = (5, 7), (9, 7), (6, 7), (11, 7)


def _qkv(x, q, k, v):
    return op.dense(x, q), op.dense(x, k), op.dense(x, v)


qkv = Composite("qkv", _qkv, why="x is read once")
CASE = Case(_qkv, x=X, q=A, k=B, v=C, constants=["q", "k", "v"])


def chosen(program, *composites, **shapes):
    graph = ir.read(emit(program, shapes)["main"])
    matches, report = select(graph, composites)
    return [[c.name for c in m.ops] for m in matches], report, matches


def run(composite, program, constants=(), composites=None, **shapes):
    found = run_case(composite, Case(program, constants=constants, **shapes), composites)
    assert_close(found)
    return found


def test_three_projections_are_one_kernel():
    found = run_case(qkv, CASE)
    assert found.counts == {"qkv": 1}
    assert len(found.found) == 3
    assert_close(found)
    assert len(kernels(selfbyoc.partition_for_tefuse(found.mod, composites=[qkv]))) == 1


def attention(x, q, k, v):
    """Queries are scaled before keys are there: what reads a result early comes after the call."""
    a = op.multiply(op.dense(x, q), 0.25)
    b = op.tanh(op.abs(op.dense(x, k)))
    return op.add(op.softmax(op.multiply(a, b)), op.dense(x, v))


def test_the_results_feed_one_another_later():
    shapes = {"x": X, "q": A, "k": A, "v": A}
    found = run(qkv, attention, ["q", "k", "v"], **shapes)
    assert found.counts == {"qkv": 1}


def test_matches_between_keep_their_functions():
    """What reads a result early moves after the call, and so do the matches made of it."""
    scaled = Composite("scaled", lambda x, by: op.multiply(x, by))
    bent = Composite("bent", lambda x: op.tanh(op.abs(x)))
    after = Composite("after", lambda x: op.exp(x))

    def program(x, q, k, v):
        y = op.exp(x)
        return attention(y, q, k, v), op.exp(op.negative(y))

    shapes = {"x": X, "q": A, "k": A, "v": A}
    asked = [qkv, bent, scaled, after]
    found = run(qkv, program, ["q", "k", "v"], asked, **shapes)
    assert found.counts == {"qkv": 1, "bent": 1, "scaled": 2, "after": 2}
    parted = selfbyoc.partition_for_tefuse(found.mod, composites=asked)
    held = {root: kernel.composite.name for kernel in kernels(parted) for root in kernel.roots}
    assert held == {r.root: r.composite for r in selfbyoc.report(parted).matched}
    assert selfbyoc.verify(found.mod, composites=asked).ok


def test_two_layers():
    def program(x, q, k, v, p, r, s):
        a, b, c = _qkv(x, q, k, v)
        y = op.add(op.multiply(a, b), c)
        return _qkv(y, p, r, s)

    square = (7, 7)
    shapes = dict.fromkeys("qkvprs", square)
    found = run(qkv, program, list(shapes), x=X, **shapes)
    assert found.counts == {"qkv": 2}


def test_of_four_three_are_taken():
    def program(x, q, k, v, w):
        return (*_qkv(x, q, k, v), op.dense(x, w))

    found, report, (match,) = chosen(program, qkv, x=X, q=A, k=B, v=C, w=(2, 7))
    assert found == [["dense", "dense_1", "dense_2"]]
    assert [match.args[n].shape for n in "qkv"] == [A, B, C]
    assert report.left == {"dense": 1}


def test_they_read_the_same_value():
    def program(x, y, q, k, v):
        return op.dense(x, q), op.dense(y, k), op.dense(x, v)

    found, report, _ = chosen(program, qkv, x=X, y=X, q=A, k=B, v=C)
    assert found == []
    (record,) = [r for r in report.records if r.root == "dense"]
    assert (record.cause, record.where) == ("value", "x")


pair = Composite("pair", lambda x, q, k, z: (op.dense(x, q), op.add(op.dense(x, k), z)))


@pytest.mark.parametrize("direct", [True, False])
def test_a_way_from_one_to_the_other_is_refused(direct):
    def program(x, q, k):
        a = op.dense(x, q)
        b = op.add(op.dense(x, k), a if direct else op.softmax(a))
        return op.exp(a), op.exp(b)

    found, report, _ = chosen(program, pair, x=X, q=A, k=A)
    assert found == []
    record = next(r for r in report.records if r.status == "refused")
    wanted = (
        "argument z is computed inside the group, by dense"
        if direct
        else "argument z is computed from a result of the group, by softmax"
    )
    assert record.reason == wanted
    run(pair, program, ["q", "k"], x=X, q=A, k=A)


def test_after_a_way_the_next_one_is_asked():
    """The first product beside it is on the way back into the group; another one is not."""

    def program(x, q, k, w, z):
        a = op.dense(x, q)
        b = op.add(op.dense(x, k), op.softmax(a))
        return b, op.add(op.dense(x, w), z)

    found, _, _ = chosen(program, pair, x=X, q=A, k=A, w=A, z=(5, 9))
    assert found == [["dense", "dense_2", "add_1"]]
    assert run(pair, program, ["q", "k"], x=X, q=A, k=A, w=A, z=(5, 9)).counts == {"pair": 1}


def test_an_inner_value_that_is_used_outside():
    shared = Composite("c", lambda x, w: (lambda y: (op.relu(y), op.tanh(y)))(op.dense(x, w)))

    def program(x, w):
        y = op.dense(x, w)
        return op.tanh(y), op.relu(y), op.softmax(y)

    found, report, _ = chosen(program, shared, x=X, w=A)
    assert found == []
    (record,) = [r for r in report.records if r.status == "refused"]
    assert record.reason == "dense is also used outside the group, by softmax"


@pytest.mark.parametrize("turned", [False, True])
def test_one_value_and_what_is_computed_from_it(turned):
    """Three results: the product, and two of it side by side; in the graph in another order."""

    def pattern(x, w):
        y = op.dense(x, w)
        return op.relu(y), y, op.tanh(y)

    def program(x, w):
        y = op.dense(x, w)
        first = op.tanh(y) if turned else op.relu(y)
        second = op.relu(y) if turned else op.tanh(y)
        return op.exp(first), op.softmax(y), op.exp(second)

    three = Composite("three", pattern)
    found = run(three, program, ["w"], x=X, w=A)
    assert found.counts == {"three": 1}
    _, _, (match,) = chosen(program, three, x=X, w=A)
    assert [v.name for v in match.outputs] == ["relu", "dense", "tanh"]


def test_a_whole_compute_and_a_schedule():
    def compute(x, q, k):
        def product(weight, name):
            i = te.reduce_axis((0, x.shape[1]), name="i")
            shape = (x.shape[0], weight.shape[0])
            return te.compute(shape, lambda n, u: te.sum(x[n, i] * weight[u, i], axis=i), name=name)

        return product(q, "first"), product(k, "second")

    def schedule(sch, ops, target):
        for one in ops:
            for block in one.blocks:
                sch.parallel(sch.get_loops(block)[0])

    two = Composite(
        "two", lambda x, q, k: (op.dense(x, q), op.dense(x, k)), schedule, compute=compute
    )
    found = run(two, lambda x, q, k: (op.dense(x, q), op.dense(x, k)), ["q"], x=X, q=A, k=B)
    assert found.counts == {"two": 1}
    assert selfbyoc.verify(found.mod, composites=[two]).ok


def test_with_parts_that_grow():
    both = Composite(
        "both",
        lambda x, q, k: (
            elementwise(op.dense(x, q)),
            repeat(lambda y, arg: op.relu(op.dense(y, arg("weight"))), op.dense(x, k)),
        ),
    )

    def program(x, q, k, a, b, shift):
        left = op.tanh(op.add(op.dense(x, q), shift))
        right = op.relu(op.dense(op.relu(op.dense(op.dense(x, k), a)), b))
        return op.softmax(left), op.softmax(right)

    shapes = {"x": X, "q": A, "k": B, "a": (4, 6), "b": (3, 4), "shift": (9,)}
    found = run(both, program, ["q", "k"], **shapes)
    assert found.counts == {"both": 1}
    _, _, (match,) = chosen(program, both, **shapes)
    assert len(match.ops) == 8  # a shift of one axis is a bias
    assert {"operand_0", "weight_0", "weight_1"} < set(match.args)


def test_outputs_of_one_op():
    halves = Composite(
        "halves",
        lambda x: (lambda s: (s[0], s[1]))(op.split(op.relu(x), indices_or_sections=2, axis=1)),
    )

    def program(x):
        s = op.split(op.relu(x), indices_or_sections=2, axis=1)
        return op.exp(s[1]), op.softmax(s[0])

    assert run(halves, program, x=(5, 6)).counts == {"halves": 1}


def test_packed_weights():
    def transposed(weight):
        units, k = weight.shape
        return te.compute((k, units), lambda i, u: weight(u, i), name="weight_t")

    def dense(ins, call):
        x, weight = ins
        k = te.reduce_axis((0, x.shape[1]), name="k")
        shape = call.outputs[0].shape
        return te.compute(
            shape, lambda i, u: te.sum(x(i, k) * weight(k, u), axis=k), name=call.name
        )

    packed = Composite(
        "packed", _qkv, pack=dict.fromkeys("qkv", transposed), compute={"dense": dense}
    )
    found = run_case(packed, CASE)
    assert found.counts == {"packed": 1}
    assert_close(found)


def test_explain_unfuse_and_lint():
    mod = emit(attention, {"x": X, "q": A, "k": A, "v": A})
    told = str(selfbyoc.explain(mod, composites=[qkv]).why("dense", "dense_2"))
    assert told.startswith("dense and dense_2 are in one kernel in qkv at dense_2: x is read once")
    parted = selfbyoc.partition_for_tefuse(mod, composites=[qkv])
    rng = np.random.default_rng(0)
    shapes = {"x": X, "q": A, "k": A, "v": A}
    given = {n: rng.standard_normal(s, np.float32) for n, s in shapes.items()}
    (apart,) = selfbyoc.build(selfbyoc.unfuse(parted, ["qkv"]), "llvm")(**given)
    (together,) = selfbyoc.build(parted, "llvm")(**given)
    np.testing.assert_allclose(apart, together, rtol=1e-5, atol=1e-6)
    declared = Composite("qkv", _qkv, why="x is read once", cases=[Case(x=X, q=A, k=B, v=C)])
    assert list(selfbyoc.lint([declared])) == []


def test_a_miss_says_what_is_not_beside_it():
    _, report, _ = chosen(lambda x, q, k: (op.dense(x, q), op.dense(x, k)), qkv, x=X, q=A, k=B)
    (record,) = [r for r in report.records if r.root == "dense"]
    assert record.reason == "at dense: wanted dense(x, v) beside it, found none"


def test_what_has_nothing_in_common_is_no_pattern():
    with pytest.raises(CompositeError, match=r"tanh\(y\) has no argument and no op in common"):
        Composite("c", lambda x, y: (op.relu(x), op.tanh(y)))
