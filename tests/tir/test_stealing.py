"""Parallel loops: each turn runs once whatever the number of threads, and who is done helps."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shared_loops import called, compiled, one_more, parallel

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tir.stealing import with_stealing
from selfbyoc.tvm import make_target, module_source, tir

SUPPORT = Path(__file__).parents[1] / "support"
# As users have it: of threads that sleep at once (conftest.py) one that wakes up may come first to
# the other one's share.
SPINS = {"TVM_THREAD_POOL_SPIN_COUNT": "300000"}
ENV = {**os.environ, **SPINS, "PYTHONPATH": os.pathsep.join([str(SUPPORT), *sys.path])}

EVERY_TURN = """
import selfbyoc, numpy as np
from shared_loops import called, compiled, one_more
for cores in (2, 5):
    for turns in (cores + 1, 16 * cores + 1, 1000):
        found = called(compiled(one_more, turns, cores, outer=3), turns)
        assert (found == 3).all(), (cores, turns, found)
    run = compiled(one_more, None, cores)
    for turns in (0, 1, cores, cores + 1, 333):
        assert (called(run, turns) == 1).all(), (cores, turns)
print("each once")
"""

WHO_RUNS = """
import selfbyoc
from shared_loops import called, compiled
from selfbyoc.tvm import tir

def body(out, turn):
    wait = tir.Evaluate(tir.call_extern("int32", "usleep", tir.const(500000, "int32")))
    mark = tir.BufferStore(out, tir.call_extern("int64", "pthread_self"), [turn])
    return tir.SeqStmt([tir.IfThenElse(turn == 0, wait, None), mark])

print(*called(compiled(body, 64, dtype="int64"), 64, "int64"))
"""


def run(program, threads):
    env = {**ENV, "TVM_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, check=False, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_each_turn_runs_once(threads):
    assert "each once" in run(EVERY_TURN, threads)


def test_who_is_done_helps_who_is_not():
    """The first turn of a share sleeps: the other thread runs all else but the turns that were
    taken together with it.
    """
    threads = np.array([*map(int, run(WHO_RUNS, 2).split())])
    asleep, helping = threads[0], threads[63]
    assert asleep != helping
    assert set(threads[:2]) == {asleep}  # 16 chunks of a share
    assert set(threads[2:]) == {helping}


def test_one_thread_does_all():
    assert len(set(run(WHO_RUNS, 1).split())) == 1


@pytest.mark.parametrize(("turns", "cores"), [(2, 2), (8, 8), (40, 1)])
def test_what_is_not_worth_it_stays_as_it_is(turns, cores):
    assert "take_chunk" not in str(with_stealing(parallel(one_more, turns), cores))
    assert (called(compiled(one_more, turns, cores), turns) == 1).all()


def test_calls_keep_their_arguments_apart():
    """TVM writes the arguments of a call where all threads would."""
    is_shared = []

    def one(out, turn):
        return tir.Evaluate(tir.call_packed("testing.echo", out[turn]))

    for body in (one, one_more):
        func = parallel(body, 40)
        is_shared.append("take_chunk" in str(with_stealing(func, 2)))
    assert is_shared == [False, True]


@pytest.mark.parametrize(
    ("triple", "wanted"), [("x86_64-linux-gnu", "lock"), ("aarch64-linux-gnu", "ldxr")]
)
def test_kernels_take_chunks(triple, wanted):
    """By an instruction, not by a call of a library that may be missing."""
    target = make_target({"kind": "llvm", "num-cores": 2, "mtriple": triple})
    mod = selfbyoc.emit(lambda x: op.relu(op.abs(x)), {"x": ((640, 1024), "float32")})
    relu = Composite("relu", lambda x: op.relu(op.abs(x)))
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, composites=[relu], target=target))
    func = finished(kernel.schedule(target)[1].mod["main"], target)
    code = module_source(
        machine_code(func.with_attr("global_symbol", "main"), "main", target), "asm"
    )
    assert wanted in code
    assert "__aarch64" not in code
