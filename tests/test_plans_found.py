"""Plans that were found to raise or to be wrong (`make plans`), each as small as shows it."""

import sys
from pathlib import Path

import pytest
from harness import assert_close, run_case

import selfbyoc
from selfbyoc import BUILTIN, Case, op
from selfbyoc.fuzz.seeds import case_program

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from plan_draws import cases, machines

COMPOSITES = {composite.name: composite for composite in BUILTIN}


def chain(first, second):
    return lambda x, w1, w2: op.relu(op.conv2d(op.relu(op.conv2d(x, w1, **first)), w2, **second))


# By what was wrong: the composite, a case of it, and the CPU.
FOUND = {
    "a weight that is packed by groups was read as Winograd's: division by zero": (
        "conv2d_relu_conv2d_relu",
        Case(
            chain(
                {"groups": 24, "strides": 2, "padding": (2, 0)},
                {"groups": 24, "strides": 2, "padding": (2, 2, 0, 2)},
            ),
            x=(4, 24, 9, 17), w1=(24, 1, 5, 1), w2=(24, 1, 7, 7), constants=("w1", "w2"),
        ),
        "haswell",
    ),
    "a weight that is packed by groups was read as Winograd's: no tiles": (
        "conv2d_relu_conv2d_relu",
        Case(
            chain(
                {"dilation": (3, 1), "strides": 2, "padding": (1, 1, 2, 3)},
                {"groups": 9, "strides": 2, "padding": 1},
            ),
            x=(1, 33, 48, 16), w1=(9, 33, 1, 3), w2=(36, 1, 3, 3), constants=("w1", "w2"),
        ),
        "skylake-avx512",
    ),
}  # fmt: skip


def asked(name, cpu, case, **more):
    machine = machines.usual(cpu)
    return cases.Case(
        name, case_program(COMPOSITES[name], case), cpu, machine, case.constants, **more
    )


@pytest.mark.parametrize("what", FOUND)
@pytest.mark.parametrize("how", [cases.BUILT, cases.TUNED, cases.LASTING])
def test_the_plan(what, how):
    name, case, cpu = FOUND[what]
    found = cases.checked(asked(name, cpu, case, how=how, sizes=(case.args["x"][0][0],)))
    assert found.plans == 2
    assert found.faults == []


@pytest.mark.parametrize("what", FOUND)
def test_the_kernel(what):
    """Nothing falls back: a warning would be an error."""
    name, case, cpu = FOUND[what]
    target = f"llvm -mcpu={cpu}"
    if selfbyoc.host.cannot_run(target):
        pytest.skip(selfbyoc.host.cannot_run(target))
    run = run_case(COMPOSITES[name], case, target=target)
    assert run.counts == {name: 1}
    assert_close(run)
