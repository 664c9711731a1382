"""Every op of every case of every built-in composite, changed in turn: the decision names it."""

from dataclasses import replace

import pytest
from harness import model, random_args

import selfbyoc
from selfbyoc.graph import OpCall, OpGraph, Value
from selfbyoc.ir.generation import ir
from selfbyoc.language.match.match import Match, find
from selfbyoc.language.match.miss import VALUE
from selfbyoc.partition.select import select
from selfbyoc.tvm import GENERATION

CASES = [
    pytest.param(composite, case, id=f"{composite.name}-{case.name}")
    for composite in selfbyoc.BUILTIN
    for case in composite.cases
    if GENERATION in case.generations
]


@pytest.fixture(scope="module")
def graphs():
    """Each case is read once."""
    known = {}

    def graph_of(composite, case):
        key = composite.name, case.name
        if key not in known:
            known[key] = ir.read(model(composite, case, random_args(case))["main"])
        return known[key]

    return graph_of


def matched(graph, composite):
    """The largest match of the case, and its root."""
    matches, _ = select(graph, [composite])
    return max(matches, key=lambda match: len(match.ops))


def with_op(graph, call, *new):
    """The graph with an op replaced."""
    at = next(i for i, c in enumerate(graph.ops) if c is call)
    return OpGraph(graph.inputs, (*graph.ops[:at], *new, *graph.ops[at + 1 :]), graph.outputs)


def names(found, op):
    """Whether the miss names the mutant; also right: a smaller form without it matches. Where an
    input in two roles may be what the mutant computes, the other one is not that.
    """
    if isinstance(found, Match):
        return all(call.kind != "mutant" for call in found.ops)
    if found.cause == VALUE:
        return f"the same value as {op}:" in found.wanted or found.found.startswith(f"{op}:")
    return (found.where, found.found) == (op, "op mutant")


@pytest.mark.parametrize(("composite", "case"), CASES)
def test_another_kind_of_op(composite, case, graphs):
    graph = graphs(composite, case)
    match = matched(graph, composite)
    for call in match.ops[:-1]:
        changed = with_op(graph, call, replace(call, kind="mutant", attrs={}))
        found = find(composite, changed, match.root)
        assert names(found, call.name), (call, found)


@pytest.mark.parametrize(("composite", "case"), CASES)
def test_an_op_between(composite, case, graphs):
    graph = graphs(composite, case)
    match = matched(graph, composite)
    inside = {v for call in match.ops for v in call.outputs}
    for call in match.ops:
        for position, value in enumerate(call.inputs):
            if value not in inside:
                continue
            between = Value(value.shape, value.dtype, "between")
            extra = OpCall("mutant", (value,), {}, (between,), "between", ("made by the test",))
            inputs = (*call.inputs[:position], between, *call.inputs[position + 1 :])
            reader = replace(call, inputs=inputs)
            changed = with_op(graph, call, extra, reader)
            root = reader if call is match.root else match.root
            found = find(composite, changed, root)
            assert names(found, "between"), (call, found)


@pytest.mark.parametrize(("composite", "case"), CASES)
def test_another_reader(composite, case, graphs):
    graph = graphs(composite, case)
    match = matched(graph, composite)
    for call in match.ops[:-1]:
        for value in call.outputs:
            if not graph.users(value):
                continue
            out = Value(value.shape, value.dtype, "spy")
            spy = OpCall("mutant", (value,), {}, (out,), "spy", ("made by the test",))
            changed = OpGraph(graph.inputs, (*graph.ops, spy), (*graph.outputs, out))
            _, report = select(changed, [composite])
            at_root = [r for r in report.records if r.root == match.root.name]
            if at_root[0].status == "matched":  # what may be there, and may not, stays outside
                assert call.kind == "transpose"
                assert call.name not in at_root[0].ops
                continue
            assert [(r.where, r.reader) for r in at_root] == [(call.name, "spy")], at_root
