"""Every case of every built-in composite: stacked, its layouts changed, raised, built by TVM alone;
and the table of what became of each is current.
"""

from pathlib import Path

import pytest
from harness import CASES
from raising import (
    arrays_for,
    cells,
    kernel_of,
    laid_out,
    reduction_of,
    reference,
    run_by_tvm,
    transformed,
)
from scripts import tool

from selfbyoc import BUILTIN, emit, host_target, raise_ops, with_plain_layouts
from selfbyoc.errors import RaiseError
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reports" / ("relay" if GENERATION == "relay" else "") / "raised-ops.md"
TOOL = tool("raised_ops")
HERE = [c for c in BUILTIN if any(GENERATION in case.generations for case in c.cases)]


@pytest.mark.parametrize(("composite", "case"), CASES)
def test_the_numbers_of_every_cell(composite, case):
    kernel = kernel_of(composite, case)
    stacked, scheduled = kernel.schedule(host_target())
    arrays = arrays_for(kernel, case)
    wanted, reduction = reference(kernel, arrays), reduction_of(kernel)
    functions = [(None, stacked.func), (None, scheduled.mod["main"])]
    functions += [(cell, transformed(stacked.func, cell)) for cell in cells(stacked.func)]
    for cell, func in functions:
        try:
            mod = emit(with_plain_layouts(raise_ops(func)))
        except RaiseError:  # the table says of which cells, and why
            if cell is None:
                raise
            continue
        found = run_by_tvm(mod, laid_out(arrays, cell))
        for f, w in zip(found, laid_out(wanted, cell, len(arrays)), strict=True):
            assert f.shape == w.shape, cell
            assert (wrong := first_wrong(f, w, str(f.dtype), reduction)) is None, (cell, wrong)


@pytest.mark.parametrize("composite", HERE, ids=lambda c: c.name)
def test_the_table_is_current(composite):
    text = PAGE.read_text(encoding="utf-8")
    where = PAGE.relative_to(ROOT)
    assert TOOL.section(composite) in text, f"run tools/raised_ops.py > {where} on {GENERATION}"


def test_the_table_has_every_composite():
    text = PAGE.read_text(encoding="utf-8")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [
        composite.name for composite in HERE
    ]
