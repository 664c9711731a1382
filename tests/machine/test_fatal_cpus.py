"""What LLVM ends the process for is refused first: CPUs of the other width, and none at all."""

import os
import subprocess
import sys

import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.errors import TargetError
from selfbyoc.machine.features import check_cpu, known_cpus
from selfbyoc.tvm import make_target


@pytest.mark.parametrize(
    ("triple", "name"),
    [("x86_64-linux-gnu", "pentium4"), ("riscv64-linux-gnu", "generic-rv32"),
     ("riscv32-linux-gnu", "generic-rv64"), ("riscv64-linux-gnu", "")],
)  # fmt: skip
def test_what_would_end_the_process_is_refused(triple, name):
    """A CPU of the other width; none, where LLVM has no "generic"."""
    target = {"kind": "llvm", "mtriple": triple, **({"mcpu": name} if name else {})}
    if not name and "generic" in known_cpus(triple):
        check_cpu(target)  # LLVM 15 and later
        return
    whose = triple if name else f"{triple}, which TVM takes for a target without -mcpu"
    model = selfbyoc.emit(lambda x, w: op.dense(x, w), {"x": (2, 8), "w": (8, 8)})
    with pytest.raises(
        TargetError, match=rf"no -mcpu={name or 'generic'} of {whose}[.;]"
    ) as caught:
        selfbyoc.partition_for_tefuse(model, target=make_target(target))
    proposed = str(caught.value).partition("features beyond it: llvm -mcpu=")[2].partition(" ")[0]
    check_cpu({**target, "mcpu": proposed})


EVERY_CPU = """
import sys
from selfbyoc.errors import TargetError
from selfbyoc.machine.features import check_cpu, known_cpus
from selfbyoc.tvm import make_target, te, tvm
from selfbyoc.tvm.build import build_module

x = te.placeholder((16,))
mod = tvm.IRModule({"main": te.create_prim_func([x, te.compute((16,), lambda i: x[i] * 2)])})
for name in known_cpus(sys.argv[1]):
    target = {"kind": "llvm", "mtriple": sys.argv[1], "mcpu": name}
    try:
        check_cpu(target)
    except TargetError:
        print("refused", name)
        continue
    build_module(mod, make_target(target))
    print("built", name)
"""


@pytest.mark.parametrize("triple", ["riscv64-linux-gnu", "riscv32-linux-gnu", "x86_64-linux-gnu"])
def test_what_is_let_through_compiles(triple):
    """Each CPU that LLVM names, in a process of its own, which LLVM would end."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", EVERY_CPU, triple],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    said = [line.split() for line in done.stdout.splitlines()]
    assert {"built", "refused"} == {verdict for verdict, _ in said}
    assert {name for _, name in said} == set(known_cpus(triple))
