"""What partitioning read travels with the function: the hook asks no pattern a second time, and
whatever becomes of the function, no build ends.
"""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from harness import CASES, model, random_args
from symbolic_programs import CASES as OPEN
from symbolic_programs import UNKNOWN, N

import selfbyoc
from selfbyoc import Composite, op, partition_for_tefuse, report, require
from selfbyoc.codegen import external
from selfbyoc.codegen.attributes import PACKED, READING, WRITTEN, told_graph
from selfbyoc.codegen.external import match_of, read_attrs
from selfbyoc.codegen.hook import hook
from selfbyoc.errors import FallbackWarning
from selfbyoc.graph import OpCall, OpGraph, Value, name_ops
from selfbyoc.ir.emit import emit
from selfbyoc.language.match import match as matching
from selfbyoc.language.match.graph_data import graph_data, graph_of
from selfbyoc.language.match.miss import OUTPUT, Miss
from selfbyoc.partition.generation import ir
from selfbyoc.tvm import GENERATION

ROWS, WIDTH = 13, 37
MISSED = Miss(OUTPUT, "planted", "a result", "none")
FIRST = {case.values[0].name: case for case in reversed(CASES)}
SOME = ("conv2d", "dense", "attention", "inception", "residual_block", "layer_norm_dense", "lstm")


@pytest.fixture
def asked(monkeypatch):
    """How often a pattern was tried on a graph."""
    count, real = Counter(), matching.Matcher.__init__

    def noted(self, *args):
        count["patterns"] += 1
        real(self, *args)

    monkeypatch.setattr(matching.Matcher, "__init__", noted)
    return count


@pytest.mark.parametrize("name", [name for name in SOME if name in FIRST])
def test_no_pattern_is_matched_in_a_build(asked, name):
    composite, case = FIRST[name].values
    parted = partition_for_tefuse(model(composite, case, random_args(case)), composites=[composite])
    assert asked["patterns"] > 0
    assert report(parted).counts
    asked.clear()
    selfbyoc.build(parted, cache=False)
    assert not asked


@pytest.mark.parametrize("name", ["dense", "layer_norm", "pool of whole images"])
def test_nor_for_symbolic_sizes(asked, name):
    _, program, args, constants = OPEN[name]
    weights = {a: np.ones(args[a], "float32") for a in constants}
    shapes = {a: tuple(UNKNOWN if e == N else e for e in shape) for a, shape in args.items()}
    parted = partition_for_tefuse(emit(program, shapes, weights))
    assert report(parted).counts
    asked.clear()
    selfbyoc.build(parted, cache=False)
    assert not asked


@pytest.mark.parametrize("size", [1, 2, 37])
def test_a_graph_of_open_sizes_reads_the_same_at_each(size):
    """Of a size of 1 a mask has the shape of a bias."""
    shapes = {"x": (3, UNKNOWN, 20), "y": (3, 20, UNKNOWN), "mask": (1, UNKNOWN, UNKNOWN)}
    made = emit(lambda x, y, mask: op.add(op.batch_matmul(x, y), mask), shapes)
    _, source = source_of(partition_for_tefuse(made))
    graph = source.at(dict.fromkeys(source.symbols, size)).graph
    assert [call.kind for call in graph.ops] == ["batch_matmul", "add"]


def program(x, w, b):
    return op.relu(op.bias_add(op.dense(x, w), b))


def weights():
    rng = np.random.default_rng(0)
    return {
        "w": rng.standard_normal((29, WIDTH)).astype("float32"),
        "b": rng.standard_normal(29).astype("float32"),
    }


X = np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype("float32")


def parted(*, is_packed, composites=None):
    shapes = {"x": (ROWS, WIDTH), "w": (29, WIDTH), "b": (29,)}
    made = emit(program, shapes, weights() if is_packed else None)
    done = partition_for_tefuse(made, composites=composites)
    packed = [PACKED in read_attrs(f.attrs) for f in ir.external_functions(done).values()]
    assert packed == [True] if is_packed and composites is None else len(packed) == 1
    return done


def built_right(mod):
    library = selfbyoc.build(mod, cache=False)
    inputs = {"x": X, **weights()}
    found = library(**{name: inputs[name] for name, _, _ in library.inputs})[0]
    wanted = np.maximum(X @ weights()["w"].T + weights()["b"], 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    return library


def changed(mod, change):
    """A module with other external functions."""
    return ir.update(mod, {n: change(f) for n, f in ir.external_functions(mod).items()}, {})


def of_an_older_version(func):
    names = {str(name) for name in func.attrs.keys()}  # noqa: SIM118 (no Python dict)
    for name in {READING, WRITTEN} & names:
        func = func.without_attr(name)
    return func


@pytest.mark.parametrize("is_packed", [False, True], ids=["inputs", "packed"])
def test_a_pattern_that_would_not_match_again_is_not_asked(monkeypatch, is_packed):
    mod = parted(is_packed=is_packed)
    monkeypatch.setattr(external, "find_whole", lambda *_: MISSED)
    library = built_right(mod)
    assert [r.cause for r in library.report.matched] == [""]


def test_a_check_that_answers_otherwise_the_second_time():
    answers = iter([True])
    mine = Composite(
        "mine", program, check=lambda match: require(next(answers, False), "once"), epilogue=True
    )
    built_right(parted(is_packed=False, composites=[mine]))


def test_an_older_module_is_matched_by_its_pattern(asked):
    mod = changed(parted(is_packed=True), of_an_older_version)
    asked.clear()
    built_right(mod)
    assert asked


@pytest.mark.parametrize("mine", [None, Composite("mine", program)], ids=["built in", "mine"])
def test_an_older_one_that_does_not_match_has_the_default_schedule(monkeypatch, mine):
    mod = parted(is_packed=False, composites=mine and [mine])
    mod = changed(mod, of_an_older_version)
    monkeypatch.setattr(external, "find_whole", lambda *_: MISSED)
    with pytest.warns(FallbackWarning, match="does not match the function .*planted"):
        library = built_right(mod)
    assert "planted" in str(library.report)


def test_an_older_one_with_packed_weights_becomes_ordinary_ops(monkeypatch):
    mod = changed(parted(is_packed=True), of_an_older_version)
    monkeypatch.setattr(external, "find_whole", lambda *_: MISSED)
    with pytest.warns(FallbackWarning, match="its ops are ordinary ones again"):
        library = built_right(mod)
    assert not library.report.matched


def other_kind(data):
    """A reading of ops that no function has any more, as where a pass rewrote it."""
    names, steps, *rest = data
    return [names, [["was", *step[1:]] for step in steps], *rest]


def of_other_ops(func):
    data = json.loads(str(func.attrs[READING]))
    return func.with_attr(READING, json.dumps(other_kind(data)))


def test_a_function_that_was_rewritten_is_matched_by_its_pattern(asked):
    mod = changed(parted(is_packed=False), of_other_ops)
    asked.clear()
    built_right(mod)
    assert asked


def source_of(mod):
    (func,) = ir.external_functions(mod).values()
    return func, hook.source_of(func, "main", read_attrs(func.attrs))


def test_packed_weights_are_read_by_the_graph_that_partitioning_wrote():
    """Another pass rewrote the body; the stand-ins of packed weights are gone."""
    func, source = source_of(parted(is_packed=True))
    raw = hook.read(func)
    ops = tuple(replace(c, kind="was") for c in raw.ops)
    rewritten = OpGraph(raw.inputs, ops, raw.outputs)
    graph = told_graph(rewritten, source.attrs)
    assert [c.kind for c in graph.ops] == [c.kind for c in source.graph.ops]
    assert match_of(replace(source, graph=graph)).args.keys() == match_of(source).args.keys()


def siblings(x, w, v, u):
    return op.add(op.multiply(op.dense(x, w), op.dense(x, v)), op.dense(x, u))


def test_ops_in_another_order_are_known_by_what_they_read():
    """Names follow the order: a plan that asks for `dense_1` would get another product."""
    mine = Composite("mine", siblings)
    shapes = {"x": (3, 4), "w": (5, 4), "v": (5, 4), "u": (5, 4)}
    func, source = source_of(partition_for_tefuse(emit(siblings, shapes), composites=[mine]))
    raw, match = hook.read(func), match_of(source)
    products = [c for c in raw.ops if c.kind == "dense"]
    ops = (*reversed(products), *(c for c in raw.ops if c.kind != "dense"))
    moved = OpGraph(raw.inputs, name_ops(ops), raw.outputs)
    graph = told_graph(moved, source.attrs)
    again = match_of(replace(source, graph=graph))

    def places(found, of):
        return {name: of.inputs.index(value) for name, value in found.args.items()}

    assert places(again, graph) == places(match, source.graph)
    assert [c.name for c in graph.ops] == [c.name for c in source.graph.ops]
    products = [call for call in graph.ops if call.kind == "dense"]
    of_source = [call for call in source.graph.ops if call.kind == "dense"]
    assert [graph.inputs.index(call.inputs[1]) for call in products] == [
        source.graph.inputs.index(call.inputs[1]) for call in of_source
    ]


def test_a_written_graph_is_the_same_graph():
    _, source = source_of(parted(is_packed=True))
    data = graph_data(source.graph)
    graph = graph_of(json.loads(json.dumps(data)))
    assert json.dumps(graph_data(graph)) == json.dumps(data)
    assert [c.name for c in graph.ops] == [c.name for c in source.graph.ops]
    assert [dict(c.attrs) for c in graph.ops] == [dict(c.attrs) for c in source.graph.ops]


@pytest.mark.skipif(GENERATION == "relay", reason="relay.build calls the hook before any lowering")
@pytest.mark.parametrize("name", ["LegalizeOps", "LambdaLift", "CanonicalizeBindings"])
@pytest.mark.parametrize("is_packed", [False, True], ids=["inputs", "packed"])
def test_passes_before_the_hook(asked, is_packed, name):
    """LegalizeOps leaves calls of PrimFuncs in the function, LambdaLift a call of another one."""
    from tvm import relax

    mod = getattr(relax.transform, name)()(parted(is_packed=is_packed))
    asked.clear()
    built_right(mod)
    assert not asked


@pytest.mark.parametrize("as_held", [False, True])
def test_what_is_written_says_how_a_weight_is_held(as_held):
    x, y = Value((1, 4, 5, 5), "float32"), Value((1, 3, 5, 5), "float32")
    weight = Value((3, 4, 1, 1), "float32", is_constant=True, held="float16", as_held=as_held)
    call = OpCall("conv2d", (x, weight), {"groups": 1}, (y,), "conv2d")
    again = graph_of(json.loads(json.dumps(graph_data(OpGraph((x, weight), (call,), (y,))))))
    assert [(v.held, v.as_held) for v in again.inputs] == [("", False), ("float16", as_held)]
