"""How many trials a task gets, and the RFC's own program tuned (WISHES C2, C9, C12)."""

from collections import Counter

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, choose, emit, extract_tasks, op
from selfbyoc.codegen.records import record as records
from selfbyoc.codegen.records.record import CHOSEN
from selfbyoc.runtime.tolerance import first_wrong

SHAPES = {"x": (9, 16), "w": (16, 16), "v": (16, 16)}
RFC = {"x": (1, 3, 224, 224), "w1": (32, 3, 3, 3), "w2": (32, 32, 3, 3)}


def fixed(sch, ops, target):
    """Nothing to choose."""
    sch.parallel(sch.get_loops(ops.dense.block)[0])


def open_(sch, ops, target):
    """One of two."""
    _, j, _ = sch.get_loops(ops.dense.block)
    sch.split(j, [None, choose("columns", (4, 8), default=4)])


def move(sch, ops, target):
    """Of one that does no arithmetic."""
    sch.parallel(sch.get_loops(ops.transpose.block)[0])


COMPOSITES = [
    Composite("fixed", lambda x, w: op.relu(op.dense(x, w)), fixed),
    Composite("open", lambda x, w: op.tanh(op.dense(x, w)), open_),
    Composite("move", lambda x: op.transpose(x, axes=(1, 0)), move),
]


def program(x, w, v):
    return op.transpose(op.tanh(op.dense(op.relu(op.dense(x, w)), v)), axes=(1, 0))


def tuned(folder, trials, **options):
    told = []
    found = selfbyoc.tune(
        emit(program, SHAPES), None, trials, folder, composites=COMPOSITES, cost_model="none",
        progress=told.append, **options,
    )  # fmt: skip
    return {o.task.composite.name: o for o in found.outcomes}, told


@pytest.mark.parametrize("trials", [1, 8])
def test_trials_are_bounded_by_what_there_is_to_choose(trials, tmp_path):
    """S1, "let the task scheduler judge": a task with nothing to choose is measured once, however
    many trials there are, and one of two ways twice.
    """
    outcomes, told = tuned(tmp_path, trials, include_simple_tasks=True)
    bound = {"fixed": 1, "open": min(2, trials), "move": 1}
    assert {name: outcome.trials for name, outcome in outcomes.items()} == bound
    measured = Counter(r.composite for r in records.read(tmp_path) if r.status != CHOSEN)
    assert measured == bound
    assert told[-1].trials_done == sum(bound.values())
    for name in ("fixed", "move"):
        assert outcomes[name].record.is_default
        assert outcomes[name].speedup == 1.0


def test_both_solutions_at_once(tmp_path):
    """S1 and S2: the tuner judges, of what is left when tasks of few ops are ignored."""
    outcomes, _ = tuned(tmp_path, 8, include_simple_tasks=True, min_ops=2)
    assert {name: outcome.trials for name, outcome in outcomes.items()} == {"fixed": 1, "open": 2}


def relu_conv(x, w):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.maximum(np.einsum("nchwij,ocij->nohw", view, w, optimize=True), 0)


def chain(x, w1, w2):
    return op.relu(op.conv2d(op.relu(op.conv2d(x, w1, padding=(1, 1))), w2, padding=(1, 1)))


def test_the_rfcs_program_is_tuned_and_built_with_its_record(tmp_path):
    """C2: "make the above Relay function as a tuning task, and also build it with the logs"."""
    mod = emit(chain, RFC)
    parted = selfbyoc.partition_for_tefuse(mod, target=selfbyoc.host_target())
    (task,) = extract_tasks(parted)
    assert task.ops == ("conv2d", "relu", "conv2d", "relu")
    assert task.has_space
    found = selfbyoc.tune(parted, None, 3, tmp_path, cost_model="none")
    (outcome,) = found.outcomes
    assert (outcome.task.key, outcome.trials, outcome.wrong) == (task.key, 3, 0)
    (chosen,) = (r for r in records.read(tmp_path) if r.status == CHOSEN)
    assert chosen.workload == task.key

    with selfbyoc.apply_records(tmp_path) as applied:
        again = selfbyoc.partition_for_tefuse(mod, target=selfbyoc.host_target())
        (kernel,) = selfbyoc.explain(again, target=selfbyoc.host_target()).report.matched
        library = selfbyoc.build(again)
    assert (len(applied.used), len(applied.refused), len(applied.unused)) == (1, 0, 0)
    assert library.report.counts == {"conv2d_relu_conv2d_relu": 1}
    assert kernel.level == "tuned record"
    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal(s).astype("float32") for n, s in RFC.items()}
    x, *weights = (a.astype("float64") for a in arrays.values())
    expected = relu_conv(relu_conv(x, weights[0]), weights[1])
    (result,) = library(**arrays)
    assert (wrong := first_wrong(result, expected, "float32", 32 * 9)) is None, wrong
