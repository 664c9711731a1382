"""Plans for many cores: parallel regions of the named workloads keep them busy. Nothing is run."""

import sys
from pathlib import Path

import pytest

from selfbyoc.analysis.melting.balance import Balance, Region, balance
from selfbyoc.analysis.melting.loop_nest import PARALLEL, SERIAL, Loop, Nest, Stage
from selfbyoc.commands.bench.suite import NAMED, suite

pytest.importorskip("onnx")
sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from cores import balances, cell  # isort: skip

# The least share of the cores' time that each kernel uses. The branches of an inception block are
# regions one after the other, the smallest of them too small for 64 cores.
LEAST = {8: 0.85, 16: 0.85, 64: 0.7}


@pytest.mark.parametrize("cores", LEAST)
@pytest.mark.parametrize("workload", [w for w in suite() if w.group == NAMED], ids=lambda w: w.name)
def test_no_core_is_idle_where_there_is_work(workload, cores):
    found = balances(workload, "haswell", cores)
    assert found
    assert min(b.use(cores) for b in found) >= LEAST[cores], cell(found, cores)


def nest(*loops):
    return Nest(tuple(loops))


def loop(extent, runs, kind=PARALLEL):
    return Loop("i", extent, kind, body=(Stage(f"s{extent}", "", "sum", "t", runs=runs),))


def test_the_busiest_core_decides():
    found = balance(nest(loop(6, 600), loop(8, 400)))
    assert [r.tasks for r in found.regions] == [6, 8]
    assert found.speed_up(1) == pytest.approx(1)
    # On four cores 6 tasks take two turns of three possible, 8 tasks two of two.
    assert found.use(4) == pytest.approx(1 / (0.6 * 2 / 6 + 0.4 * 2 / 8) / 4)
    assert found.regions[0].use(4) == pytest.approx(6 / 8)


def test_what_is_in_no_region_runs_on_one_core():
    found = balance(nest(loop(4, 100), loop(4, 100, SERIAL)))
    assert found.serial == pytest.approx(0.5)
    assert found.speed_up(1000) == pytest.approx(1 / (0.5 + 0.5 / 4))
    assert Balance((Region(("s",), 4, 1.0),), 0.0).use(4) == pytest.approx(1)
