"""What the fuzzer grows: sound, the same for a seed, small; and how a finding is made smaller."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from selfbyoc import BUILTIN
from selfbyoc.analysis.verify.reference import Question
from selfbyoc.analysis.verify.rounding import Rounding, rounding
from selfbyoc.commands.fuzz.attempt import Setting
from selfbyoc.commands.fuzz.generation import planter
from selfbyoc.commands.fuzz.grow import grown, twin
from selfbyoc.commands.fuzz.infer import infer
from selfbyoc.commands.fuzz.judge import WRONG, Finding
from selfbyoc.commands.fuzz.meaning import graph_of, model, numbers
from selfbyoc.commands.fuzz.oracle import both_moved, differing, moved_by_inputs, typed_as
from selfbyoc.commands.fuzz.program import CONSTANT, INPUT, Draft, Node, Program, from_json
from selfbyoc.commands.fuzz.run import Plan, programs
from selfbyoc.commands.fuzz.seeds import seeds
from selfbyoc.commands.fuzz.shapes import LIMIT, work
from selfbyoc.commands.fuzz.shrink import shrunk
from selfbyoc.commands.fuzz.spell import ALL, TWINS, respelled
from selfbyoc.commands.fuzz.targets import others
from selfbyoc.errors import InputError
from selfbyoc.ir.generation import ir
from selfbyoc.partition import check_target
from selfbyoc.runtime.numpy_ops import all_values
from selfbyoc.tvm import target_dict

SEEDS = seeds(BUILTIN)
GROWN = [grown(SEEDS, 7, n) for n in range(40)]


def values(program):
    """What NumPy makes of a program's outputs, in float64."""
    graph = graph_of(program)
    made = numbers(program, graph, "random")
    with np.errstate(all="ignore"):
        known = all_values(graph, [made[v.name] for v in graph.inputs])
    return graph, [known[v] for v in graph.outputs]


def test_every_case_is_a_seed_of_its_own_types():
    assert len(SEEDS) > 100
    for program in SEEDS:
        assert infer(program)


def test_the_same_seed_grows_the_same_programs():
    again = [grown(SEEDS, 7, n) for n in range(40)]
    assert [p.to_json() for p in again] == [p.to_json() for p in GROWN]
    assert [p.to_json() for p in GROWN] != [grown(SEEDS, 8, n).to_json() for n in range(40)]


def test_another_process_grows_the_same_programs():
    code = (
        "from selfbyoc.commands.fuzz.run import *; print(next(programs(Plan(seed=7)))[1].to_json())"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "5"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == GROWN[0].to_json().strip()


def test_programs_are_many_and_small():
    assert len({p.to_json() for p in GROWN}) == len(GROWN)
    assert all(work(p, infer(p)) <= 4 * LIMIT for p in GROWN)
    told = " ".join(" ".join(p.grown[1:]) for p in (grown(SEEDS, 1, n) for n in range(900)))
    for change in (
        "spelled", "then", "twice", "two roles", "leaf", "reader", "returned", "-> 1", "branches",
        "an image of 1 x", "dilation (1, 3)",
    ):  # fmt: skip
        assert change in told
    # Which window and how many groups meet is chance, and moves with every case that is added.
    windows = re.findall(r"conv2d of \((\d), (\d)\) in (\d+) groups", told)
    assert any(height != width and int(groups) > 1 for height, width, groups in windows)


def test_windows_are_drawn_side_by_side():
    """Each of four pads, two strides and two dilations by itself: what models do not have."""
    convs = [n for i in range(500) for n in grown(SEEDS, 2, i).nodes if n.kind == "conv2d"]
    pads = [n.attrs["padding"] for n in convs if isinstance(n.attrs.get("padding"), tuple)]
    assert sum(len(p) == 4 and p[0] != p[2] for p in pads) > 10
    for name in ("strides", "dilation"):
        assert sum(np.unique(n.attrs.get(name, 1)).size == 2 for n in convs) > 20
    assert len({n.attrs.get("groups", 1) for n in convs}) > 5


def test_a_third_is_for_other_targets():
    known = others()
    programs = [grown(SEEDS, 5, n, targets=known) for n in range(60)]
    found = [p for p in programs if p.target]
    assert len(known) > 1
    assert 10 < len(found) < 30
    assert {p.target for p in found} <= set(known)
    assert from_json(found[0].to_json()) == found[0]
    assert str(Setting().of(found[0])) == str(check_target(found[0].target))
    hasty = target_dict(Setting(opt_level=0).of(found[0]))
    assert hasty == {**target_dict(check_target(found[0].target)), "opt-level": 0}
    assert not any(p.target for p in (grown(SEEDS, 5, n) for n in range(20)))


def test_a_case_is_text_and_back():
    for program in GROWN:
        assert from_json(program.to_json()) == program


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"nodes": []}', '{"seed": 0, "nodes": [], "outputs": [0]}',
     '{"seed": 0, "nodes": [{"kind": "relu", "inputs": [0]}], "outputs": [0]}'],
)  # fmt: skip
def test_other_text_is_no_case(text):
    with pytest.raises(InputError, match="case"):
        from_json(text)


@pytest.mark.parametrize("number", range(0, 40, 2))
def test_types_are_those_of_the_model_and_of_numpy(number):
    program = replace(GROWN[number], plant=None)
    graph, found = values(program)
    assert [a.shape for a in found] == [v.shape for v in graph.outputs]
    read = ir.read(model(program, numbers(program, graph, "random"))["main"])
    assert [v.type for v in read.outputs] == [v.type for v in graph.outputs]


def leaf(value, *shape, kind=CONSTANT):
    return Node(kind, shape=shape, dtype="float32", value=value)


# One op of each kind that has spellings, on leaves that are full of one number each.
SPELLED = {
    "clip": (leaf(0.7, 2, 3, 4), {"a_min": -1.0, "a_max": 0.5}),
    "relu": (leaf(-0.7, 2, 3), {}), "silu": (leaf(0.7, 2, 3), {}), "gelu": (leaf(0.7, 2, 3), {}),
    "hard_swish": (leaf(0.7, 2, 3), {}),
    "bias_add": (leaf(0.7, 2, 3, 4), leaf(0.2, 3), {}),
    "add": (leaf(0.7, 2, 3), leaf(0.5), {}), "multiply": (leaf(0.7, 2, 3), leaf(0.5), {}),
    "maximum": (leaf(0.7, 2, 3), leaf(0.9), {}), "minimum": (leaf(0.7, 2, 3), leaf(0.5), {}),
    "divide": (leaf(0.7, 2, 3), leaf(0.5), {}), "subtract": (leaf(0.7, 2, 3), leaf(0.2, 3), {}),
    "dense": (leaf(0.7, 2, 3), leaf(0.2, 5, 3), {}), "softmax": (leaf(0.7, 2, 3), {"axis": 0}),
    "layer_norm": (leaf(0.7, 2, 3), leaf(2.0, 3), leaf(0.3, 3), {"epsilon": 0.1}),
    "rms_norm": (leaf(0.7, 2, 3), leaf(2.0, 3), {"epsilon": 0.1}),
    "global_avg_pool2d": (leaf(0.7, 1, 2, 3, 4), {}),
}  # fmt: skip


def test_every_kind_with_spellings_is_tried():
    assert set(SPELLED) | {"*"} == set(ALL)


@pytest.mark.parametrize("kind", SPELLED)
def test_a_spelling_means_the_same(kind):
    *leaves, attrs = SPELLED[kind]
    at = len(leaves)
    program = Program((*leaves, Node(kind, tuple(range(at)), attrs)), (at,))
    _, (wanted,) = values(program)
    for how in (*ALL[kind], *ALL["*"]):
        draft = Draft(program)
        new = how(draft, program.nodes[at], infer(program), Random(3))
        if new is None:
            continue
        draft.redirect(at, new, keep=range(at + 1, len(draft.nodes)))
        _, (found,) = values(draft.done(how.__name__))
        np.testing.assert_allclose(found, wanted, rtol=1e-7, err_msg=how.__name__)


def test_a_twin_is_another_program():
    pairs = [(p, twin(p)) for p in GROWN]
    assert sum(t is not None for _, t in pairs) > 20
    assert all(t is None or t.to_json() != p.to_json() for p, t in pairs)


@pytest.mark.parametrize(("shape", "is_twin"), [((2, 3, 1, 1), True), ((1, 1, 1, 1), False)])
def test_a_bias_that_reads_as_a_residual_is_no_twin(shape, is_twin):
    channels = shape[1]
    nodes = (
        leaf(None, *shape, kind=INPUT), leaf(None, channels, channels, 1, 1), leaf(None, channels),
        Node("conv2d", (0, 1)), Node("bias_add", (3, 2)),
    )  # fmt: skip
    program = Program(nodes, (4,))
    twins = [respelled(program, infer(program), Random(seed), TWINS) for seed in range(40)]
    assert is_twin == any("bias_add_bias" in t.grown[-1] for t in twins if t is not None)


def test_shrinking_keeps_the_fault_and_drops_the_rest():
    def judged(program):
        types = infer(program)
        wide = [i for i, n in enumerate(program.nodes) if n.kind == "exp"]
        if any(types[i][0][0][-1] > 4 for i in wide):
            return Finding(WRONG, "wide", program)
        return None

    nodes = (
        leaf(None, 3, 40, kind=INPUT), leaf(None, 3, 40), leaf(0.5),
        Node("add", (0, 1)), Node("exp", (3,)), Node("multiply", (4, 2)), Node("relu", (5,)),
    )  # fmt: skip
    found = shrunk(judged(Program(nodes, (6, 4))), judged, 200, 60.0)
    assert found.program.kinds() == ["exp"]
    assert found.program.nodes[0].shape == (1, 5)
    assert judged(found.program) is not None


PLANTED = next(p for p in (grown(SEEDS, 7, n) for n in range(80)) if p.plant is not None)


def test_an_attribute_is_planted_in_the_model():
    assert from_json(PLANTED.to_json()) == PLANTED
    plant = PLANTED.plant
    mods = [
        model(p, numbers(p, graph_of(p), "random")) for p in (PLANTED, replace(PLANTED, plant=None))
    ]
    found, before = (
        [attrs[plant.name] for op, attrs in planter.op_calls(mod) if op == plant.op][plant.index]
        for mod in mods
    )
    assert str(found) != str(before)
    assert twin(PLANTED) is None


def test_an_op_that_is_not_there_has_no_attribute():
    none = replace(PLANTED, plant=replace(PLANTED.plant, index=99))
    with pytest.raises(InputError, match="number 99"):
        model(none, numbers(none, graph_of(none), "random"))


def test_two_builds_of_a_planted_program_may_be_as_far_apart_as_rounding_moves_the_plain_one():
    wide, exact = Rounding(0.1, np.zeros((2, 3), bool)), Rounding(0.0, np.zeros(3, bool))
    levels = Rounding(0.0, np.array([False, True]))
    assert [r.slack for r in both_moved([wide, exact, levels])] == [0.2, 0.0, np.inf]
    graph = typed_as(graph_of(PLANTED), [np.ones(4, "float32")])
    one = np.ones(4, "float32")
    assert differing([one + np.float32(0.15)], [one], graph, both_moved([wide])) == ""
    assert differing([one + np.float32(0.15)], [one], graph, both_moved([exact])) != ""


def test_a_planted_attribute_goes_before_all_else_if_it_is_not_the_fault():
    found = shrunk(Finding(WRONG, "", PLANTED), lambda p: Finding(WRONG, "", p), 100, 60.0)
    assert found.program.plant is None


def test_a_plan_ends_by_number():
    assert [n for n, _ in programs(Plan(count=3))] == [0, 1, 2]


def test_a_gelu_far_below_zero_is_as_exact_as_its_input():
    """What is divided by it moves with it."""
    nodes = (Node(INPUT, shape=(2,), dtype="float32"), Node("gelu", (0,)), Node("divide", (0, 1)))
    graph = graph_of(Program(nodes, (2,)))
    x = np.array([-5.0, -5.01])
    asked = Question("negative", [x], all_values(graph, [x]))
    expected = [asked.values[v] for v in graph.outputs]
    (moved,) = rounding(graph, asked, expected, seed=0)
    assert moved.slack > 0.05 * expected[0].max()


@pytest.mark.parametrize(("last", "moves"), [(1e-9, True), (1.0, False)])
def test_a_comparison_is_left_out_where_rounding_turns_it(last, moves):
    """NumPy subtracts no bools: `verify` and the fuzzer ended there."""
    leaves = (leaf(None, 2, kind=INPUT), leaf(0.0))
    nodes = (*leaves, Node("subtract", (0, 1)), Node("greater", (2, 1)))
    graph, given = graph_of(Program(nodes, (3,))), [np.array([3.0, last]), np.zeros(())]
    asked = Question("random", given, all_values(graph, given))
    (moved,) = rounding(graph, asked, [np.array([True, True])], seed=0)
    assert moved.left_out.tolist() == [False, moves]


def test_errors_of_a_sum_grow_with_it():
    """What a mean leaves of equal numbers is nothing but these."""
    x, y = (Node(INPUT, shape=(2, count), dtype="float64") for count in (4096, 1))
    mean = Node("mean", (0,), {"axis": (-1,), "keepdims": True})
    nodes = (x, y, mean, Node("subtract", (0, 2)), Node("add", (3, 1)))
    graph, given = graph_of(Program(nodes, (4,))), [np.full((2, 4096), 0.7), np.ones((2, 1))]
    asked = Question("borders", given, all_values(graph, given))
    (moved,) = rounding(graph, asked, [np.ones((2, 4096))], seed=0)
    assert 2 * 0.7 * 2.0**-53 * np.sqrt(4096) < moved.slack < 1e-13


def test_how_far_a_program_moves_that_only_runs():
    given = {"x": np.array([1.0, -1.0 + 2.0**-40])}
    (moved,) = moved_by_inputs(lambda g: [g["x"].sum()], given)
    assert 2.0**-52 < moved.slack < 2.0**-48
