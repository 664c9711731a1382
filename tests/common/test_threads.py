"""The thread pool: as many threads as the process may use, and the process left as it was."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from selfbyoc.common.threads import SPINS, configure, count
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION, te

SUPPORT = Path(__file__).parents[1] / "support"
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT / "no_torch"), *sys.path])}

PROGRAM = """
import os
before = os.sched_getaffinity(0)
import numpy as np
import selfbyoc
from selfbyoc import Composite, emit, op
from selfbyoc.tvm import tvm
relu = Composite("relu", lambda x: op.relu(op.abs(x)))
library = selfbyoc.build(emit(relu.pattern, {"x": ((64, 1024), "float32")}), composites=[relu])
x = np.ones((64, 1024), "float32")
assert (library(x)[0] == x).all()
assert os.sched_getaffinity(0) == before, "the affinity was changed"
print(tvm.get_global_func("runtime.NumThreads")(), len(before))
"""


def run(**variables):
    clean = {k: v for k, v in ENV.items() if not k.startswith(("TVM_", "OMP_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**clean, **variables},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    threads, cores = map(int, done.stdout.split())
    return threads, cores


def test_all_cores_of_the_process():
    threads, cores = run()
    assert threads == cores


def test_what_the_user_set_counts():
    assert run(TVM_NUM_THREADS="1")[0] == 1


@pytest.mark.parametrize("asked", [None, "5"])
def test_idle_threads_sleep_early_unless_the_user_says_when(asked, monkeypatch):
    name = "TVM_THREAD_POOL_SPIN_COUNT"
    monkeypatch.delenv(name, raising=False)
    if asked:
        monkeypatch.setenv(name, asked)
    configure()
    assert os.environ[name] == (asked or str(SPINS))


@pytest.mark.parametrize("name", ["TVM_NUM_THREADS", "OMP_NUM_THREADS"])
@pytest.mark.parametrize("text", ["many", "0", "-2", "1.5"])
def test_what_is_no_number_of_threads_is_an_error(name, text, monkeypatch):
    monkeypatch.delenv("TVM_NUM_THREADS", raising=False)
    monkeypatch.setenv(name, text)
    with pytest.raises(InputError, match=f"{name}={text}: expected a number of threads from 1 on"):
        count()
    monkeypatch.setenv(name, "3,2")  # OpenMP's form: one for each level
    assert count() == 3


def test_openmps_variable_counts_too():
    assert run(OMP_NUM_THREADS="1")[0] == 1


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's builders keep nothing for the process")
def test_each_thread_writes_its_own_model():
    """TVM's BlockBuilder keeps one stack for the process, unless told otherwise."""
    from tvm import relax

    meeting = threading.Barrier(2)

    def write(rows):
        builder = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorType((rows, 4), "float32"))
        with builder.function("main", [x]):
            meeting.wait(timeout=300)  # both have begun
            assert relax.BlockBuilder.current() is builder
            builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
            meeting.wait(timeout=300)  # neither has ended
        return builder.get()

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(write, (3, 5)))
    assert [int(mod["main"].params[0].ty.shape[0]) for mod in found] == [3, 5]
    assert relax.BlockBuilder.current() is None


def test_each_thread_has_its_own_tag():
    """TOPI's computes run under one."""
    meeting = threading.Barrier(2)

    def compute(name):
        with te.tag_scope(name):
            meeting.wait(timeout=300)  # both have begun
            made = te.compute((3,), lambda i: i, name="made")
            meeting.wait(timeout=300)  # neither has ended
        return made.op.tag, te.compute((3,), lambda i: i).op.tag

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(compute, ("a", "b"))) == [("a", ""), ("b", "")]


def test_eight_threads_build_and_call_at_once():
    """Different models, equal models for different targets: all right, and no error."""
    command = [sys.executable, str(SUPPORT / "many_threads.py"), "8", "2"]
    done = subprocess.run(command, env=ENV, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]


FORK = """
import os, signal, sys
import numpy as np
from selfbyoc import build, emit, op
x = np.random.default_rng(0).standard_normal((64, 1024)).astype("float32")
library = build(emit(lambda x: op.softmax(x), {"x": (x.shape, "float32")}))
session = library.session()
tensor = session.tensor(x)
expected = library(x)[0]  # starts the pool
session(tensor)

def right():
    found = [library(x)[0], session(tensor)[0].numpy()]
    assert all((f == expected).all() for f in found)
    library.prepared(x)()

def in_a_child(generations):
    if (child := os.fork()) == 0:
        signal.alarm(60)
        right()
        if generations > 1:
            in_a_child(generations - 1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, generations

in_a_child(2)
right()
print("right")
"""


def test_a_fork_after_a_call():
    """The child's calls hung: the threads of its pool were not forked with it."""
    command = [sys.executable, "-c", FORK]
    done = subprocess.run(command, env=ENV, capture_output=True, text=True, timeout=200)
    assert done.stdout == "right\n", done.stdout + done.stderr[-3000:]
