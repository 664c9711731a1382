"""The thread pool: as many threads as the process may use, and the process left as it was."""

import os
import subprocess
import sys

import pytest

from selfbyoc.errors import InputError
from selfbyoc.runtime.threads import count

PROGRAM = """
import os
before = os.sched_getaffinity(0)
import numpy as np
import selfbyoc
from selfbyoc import Composite, emit, op
from selfbyoc._tvm import tvm
relu = Composite("relu", lambda x: op.relu(op.abs(x)))
library = selfbyoc.build(emit(relu.pattern, {"x": ((64, 1024), "float32")}), composites=[relu])
x = np.ones((64, 1024), "float32")
assert (library(x)[0] == x).all()
assert os.sched_getaffinity(0) == before, "the affinity was changed"
print(tvm.get_global_func("runtime.NumThreads")(), len(before))
"""


def run(**variables):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TVM_", "OMP_"))}
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
