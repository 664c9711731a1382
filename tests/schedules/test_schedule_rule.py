"""Rules of MetaSchedule that read op info, searched by `tune` (WISHES B20, B21)."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness import assert_close, model, random_args, run_case

import selfbyoc
from selfbyoc import Case, Composite, by_meta_schedule, choose, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.records import record as records
from selfbyoc.codegen.records.record import CHOSEN, FAILED, MEASURED
from selfbyoc.codegen.target import host_target
from selfbyoc.errors import RecordWarning, ScheduleError
from selfbyoc.language.decisions import deciding
from selfbyoc.tuning import engine, run
from selfbyoc.tvm.tune import derived, meta_schedule

PATH = Path(__file__).parents[2] / "examples" / "rule_of_tiles.py"
SPEC = importlib.util.spec_from_file_location("rule_of_tiles", PATH)
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)

ms = meta_schedule()
SHAPES = {"data": (1, 8, 23, 100), "v": (16, 8, 3, 3), "w": (8, 16, 3, 3)}
ROWS = {"v": (23, (1, 2, 3, 4, 6, 8)), "w": (11, (1, 2))}  # of the results, and of tiles that fit
TAKEN = "sample_categorical 0"


def network():
    return selfbyoc.emit(example.network, SHAPES)


def assert_right(library):
    rng = np.random.default_rng(0)
    args = {n: rng.standard_normal(s).astype("float32") for n, s in SHAPES.items()}
    expected = args["data"]
    for name, (stride, pad) in example.CONVOLUTIONS.items():
        expected = example.reference(expected, args[name], stride, pad)
    np.testing.assert_allclose(library(**args)[0], expected, rtol=1e-4, atol=1e-4)


def tiles_of(parted):
    """How many tiles of rows each kernel has, run in parallel."""
    nests = [report.nest.loops_of("relu")[0] for report in selfbyoc.melting(parted).kernels]
    assert {loop.kind for loop in nests} == {"parallel"}
    return [loop.extent for loop in nests]


def test_tiles_from_strides_and_padding():
    """What a tile may be follows from the attributes, and a build takes the rule's own decision."""
    parted = selfbyoc.partition_for_tefuse(network(), composites=[example.ruled])
    offered = [task.variant().choices[TAKEN] for task in selfbyoc.extract_tasks(parted)]
    assert [c.candidates for c in offered] == [tuple(range(len(t))) for _, t in ROWS.values()]
    assert [c.taken for c in offered] == [len(tiles) - 1 for _, tiles in ROWS.values()]
    assert tiles_of(parted) == [-(-rows // tiles[-1]) for rows, tiles in ROWS.values()]
    assert_right(selfbyoc.build(parted))


@pytest.fixture(scope="module")
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "BUILDERS", 1)
        patch.setattr(run, "TIMED", 0.01)
        yield


@pytest.fixture(scope="module")
def tuned(quick, tmp_path_factory):
    """One run over both convolutions; -> its outcomes, and its folder."""
    folder = tmp_path_factory.mktemp("tuned")
    found = selfbyoc.tune(network(), None, 9, folder, composites=[example.ruled], cost_model="none")
    return found.outcomes, folder


def test_tune_tries_what_the_rule_samples(tuned):
    outcomes, folder = tuned
    for outcome, (_, tiles) in zip(outcomes, ROWS.values(), strict=True):
        assert (outcome.trials, outcome.failed, outcome.wrong) == (len(tiles), 0, 0)
        found = [r for r in records.read(folder) if r.workload == outcome.task.key]
        measured = [r for r in found if r.status == MEASURED]
        taken = [r.decisions.get(TAKEN, len(tiles) - 1) for r in measured]
        assert sorted(taken) == list(range(len(tiles)))
        assert [r.status for r in found].count(CHOSEN) == 1


@pytest.mark.parametrize("at", [0, 1])
def test_a_build_takes_the_record(tuned, tmp_path, at):
    """Whichever was fastest; 23 and 11 rows have tails of each tile but one row."""
    for record in records.read(tuned[1]):
        if record.status == MEASURED and record.decisions.get(TAKEN) == at:
            records.append(tmp_path, replace(record, status=CHOSEN))
    default_too = at == len(ROWS["w"][1]) - 1  # of the second one: it has no record here
    with selfbyoc.apply_records(tmp_path) as applied:
        parted = selfbyoc.partition_for_tefuse(
            network(), target=host_target(), composites=[example.ruled]
        )
        library = selfbyoc.build(parted)
    assert len(applied.used) == 2 - default_too
    levels = [match.level for match in selfbyoc.explain(parted).report.matched]
    assert levels == ["tuned record", "own schedule" if default_too else "tuned record"]
    assert tiles_of(parted) == [-(-rows // tiles[at]) for rows, tiles in ROWS.values()]
    assert_right(library)


def test_what_was_chosen_is_built(tuned):
    with selfbyoc.apply_records(tuned[1]) as applied:
        library = selfbyoc.build(network(), composites=[example.ruled])
    assert (len(applied.used), applied.refused) == (2, {})
    assert_right(library)


def test_a_record_that_the_rule_offers_no_more(tuned, tmp_path):
    """As after an edit of the rule: the build says so, and takes the rule's decision."""
    record = next(r for r in records.read(tuned[1]) if r.status == MEASURED and r.decisions)
    records.append(tmp_path, replace(record, status=CHOSEN, decisions={TAKEN: 77}))
    with (
        pytest.warns(RecordWarning, match="'sample_categorical 0' was given 77"),
        selfbyoc.apply_records(tmp_path),
    ):
        assert_right(selfbyoc.build(network(), composites=[example.ruled]))


# Small rules, each for one thing.

LAYER = Case(lambda x, w: op.relu(op.dense(x, w)), x=(30, 7), w=(12, 7))


class Rule(ms.schedule_rule.PyScheduleRule):
    """Does something to the block of relu alone."""

    def _initialize_with_tune_context(self, context):
        self.target = context.target

    def apply(self, sch, block):
        (relu,) = selfbyoc.op_info(sch)[1].blocks
        return self.to_relu(sch, block) if sch.get(block).name_hint == relu else [sch]


class Drawn(Rule):
    """The second tile is one of the first one's inner loop; no decision is given."""

    def to_relu(self, sch, block):
        row, _ = sch.get_loops(block)
        _, inner = sch.split(row, sch.sample_perfect_tile(row, 2, 64))
        sch.split(inner, sch.sample_perfect_tile(inner, 2, 64))
        return [sch]


class Two(Rule):
    """Two design spaces: in parallel, and not."""

    def to_relu(self, sch, block):
        other = sch.copy()
        sch.parallel(sch.get_loops(block)[0])
        return [sch, other]


class Asks(Rule):
    """Leaves a number to `choose`; one cannot be."""

    def to_relu(self, sch, block):
        rows = choose("rows", (3, 4, 0), default=3)
        sch.split(sch.get_loops(block)[0], [None, 30 // rows])
        return [sch]


def composite(*rules):
    return Composite("ruled", LAYER.program, by_meta_schedule(*rules))


def scheduled(told, *rules):
    """The loops of relu under these decisions, and what was asked."""
    ruled = composite(*rules)
    parted = selfbyoc.partition_for_tefuse(
        model(ruled, LAYER, random_args(LAYER)), composites=[ruled]
    )
    (kernel,) = kernels(parted)
    with deciding(told) as asked:
        _, made = kernel.schedule(host_target())
    sch = selfbyoc.tvm.Schedule(made.mod)
    loops = map(sch.get, sch.get_loops(selfbyoc.tvm.get_block(sch, "relu")))
    return [int(loop.extent) for loop in loops], asked.made


def test_without_a_decision_it_is_drawn_once():
    extents, asked = scheduled({}, Drawn())
    assert scheduled({}, Drawn()) == (extents, asked)
    (first, tile), (second, inner) = asked.items()
    assert (first, second) == ("sample_perfect_tile 0", "sample_perfect_tile 1")
    assert {(1, 30), (5, 6), (30, 1)} <= set(tile.candidates)
    assert extents == [tile.taken[0], *inner.taken, 12]
    # The drawn second tile fits no more where the first one is told.
    for told in ((2, 15), (15, 2)):
        extents, asked = scheduled({first: told}, Drawn())
        assert extents == [told[0], *asked[second].taken, 12]
    assert scheduled({first: (2, 15), second: (3, 5)}, Drawn())[0] == [2, 3, 5, 12]


def test_several_design_spaces():
    assert scheduled({}, Two())[1]["design space"].candidates == (0, 1)
    parallel = []
    for told in (0, 1):
        with deciding({"design space": told}):
            (report,) = selfbyoc.melting(
                selfbyoc.partition_for_tefuse(
                    model(composite(Two()), LAYER, random_args(LAYER)),
                    composites=[composite(Two())],
                )
            ).kernels
        parallel.append(report.nest.loops_of("relu")[0].kind == "parallel")
    assert sorted(parallel) == [False, True]


def test_choose_in_a_rule(quick, tmp_path):
    """Its Python runs anew for each candidate, and what it raises is one that failed."""
    assert scheduled({"rows": 4}, Asks())[0] == [5, 7, 12]  # a tail
    mod = model(composite(Asks()), LAYER, random_args(LAYER))
    (outcome,) = selfbyoc.tune(
        mod, None, 5, tmp_path, composites=[composite(Asks())], cost_model="none"
    ).outcomes
    assert (outcome.trials, outcome.failed, outcome.wrong) == (2, 1, 0)
    (failed,) = [r for r in records.read(tmp_path) if r.status == FAILED]
    assert failed.error.startswith(
        "ScheduleError: composite ruled: by_meta_schedule: Asks raised ZeroDivisionError"
    )


@pytest.mark.parametrize("rule", [derived(Drawn)(), Drawn()], ids=["derived", "plain"])
def test_beside_rules_of_tvms(rule):
    """MetaSchedule's own take annotations for parallel loops and vectors."""
    loops = ms.schedule_rule.ParallelizeVectorizeUnroll(16, 64, [0], True)
    ruled = composite(rule, loops)
    found = run_case(ruled, LAYER)
    assert found.counts == {"ruled": 1}
    assert_close(found)
    mod = model(ruled, LAYER, random_args(LAYER))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[ruled])
    (report,) = selfbyoc.melting(parted).kernels
    assert report.level.name == "own schedule"
    assert report.nest.loops_of("relu")[0].kind == "parallel"


def answers(found):
    return type("Answers", (Rule,), {"to_relu": lambda self, sch, block: found})()


class Raises(Rule):
    def to_relu(self, sch, block):
        return {}["nothing"]


class Primitive(Rule):
    def to_relu(self, sch, block):
        sch.compute_inline(block)
        return [sch]


class Begins(Rule):
    def _initialize_with_tune_context(self, context):
        raise ValueError("not for me")


class Interrupted(Rule):
    def to_relu(self, sch, block):
        raise KeyboardInterrupt


WRONG = {
    "raises": (Raises(), "Raises raised KeyError: 'nothing'"),
    "derived": (derived(Raises)(), "Raises raised KeyError: 'nothing'"),
    "a primitive raises": (Primitive(), "Primitive raised ScheduleError: "),
    "begins": (Begins(), "Begins raised ValueError: not for me"),
    "nothing": (answers(None), "Answers: apply: expected a list of schedules, found None"),
    "no list": (answers(7), "Answers: apply: expected a list of schedules, found 7"),
    "no schedules": (answers([7]), r"Answers: apply: expected a list of schedules, found \[7\]"),
    "empty": (answers([]), "Answers: expected a schedule, found none"),
    "no rule": (7, "expected a rule of MetaSchedule, or a PyScheduleRule, found 7"),
    "a class": (Drawn, "expected a rule of MetaSchedule, or a PyScheduleRule, found <class"),
}


@pytest.mark.parametrize(("rule", "text"), WRONG.values(), ids=list(WRONG))
def test_a_rule_that_is_wrong(rule, text, tmp_path):
    """The build and the tuner say which composite, and which rule; TVM 0.17 would die of a None."""
    ruled, text = composite(rule), f"^composite ruled: by_meta_schedule: {text}"
    mod = model(ruled, LAYER, random_args(LAYER))
    with pytest.raises(ScheduleError, match=text):
        selfbyoc.build(mod, composites=[ruled])
    with pytest.raises(ScheduleError, match=text):
        selfbyoc.tune(mod, None, 2, tmp_path, composites=[ruled])


def test_ctrl_c_in_a_rule():
    with pytest.raises(KeyboardInterrupt):
        scheduled({}, Interrupted())


def test_no_rules():
    with pytest.raises(ScheduleError, match=r"^by_meta_schedule: expected a rule of MetaSchedule"):
        by_meta_schedule()
