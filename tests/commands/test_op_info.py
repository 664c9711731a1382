"""`python -m selfbyoc op-info`: tables, data and the report in docs/."""

import json
import re
from pathlib import Path

import pytest

from selfbyoc import BUILTIN
from selfbyoc.__main__ import main
from selfbyoc.codegen.info.op_record import info_from
from selfbyoc.tvm import GENERATION

REPORT = Path(__file__).parents[2] / "docs" / "reports" / "op-info.md"


def test_one_composite(capsys):
    assert main(["op-info", "conv2d", "--target", "llvm"]) == 0
    text = capsys.readouterr().out
    for part in ("own schedule", "data_layout*=NCHW", "out_elemwise_fusable", "-> in relu"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 120


def test_as_data(capsys, tmp_path):
    path = tmp_path / "ops.json"
    assert main(["op-info", "softmax", "--json", str(path)]) == 0
    (table,) = json.loads(path.read_text(encoding="utf-8"))
    assert table["composite"] == "softmax"
    infos = [info_from(data) for data in table["after"]]
    assert infos[0].kind == "softmax"
    assert infos[0].attrs == {"axis": -1}
    assert infos[0].layout_sensitive == ("axis",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nothing"], "composite 'nothing' is not registered"), (["--target", "mips9"], "target: ")],
)
def test_one_line_for_what_is_wrong(arguments, message, capsys):
    assert main(["op-info", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert error.count("\n") == 1


@pytest.mark.skipif(GENERATION == "relay", reason="the report is made on Relax")
def test_the_report_is_current(capsys):
    """Every composite that has a case on Relax; for one of them, to the letter."""
    text = REPORT.read_text(encoding="utf-8")
    here = {c.name for c in BUILTIN if any(GENERATION in case.generations for case in c.cases)}
    assert {c.name for c in BUILTIN} - here == {"lrn"}  # Relax has no such op
    assert set(re.findall(r"^## (\w+)$", text, re.MULTILINE)) == here
    assert main(["op-info", "softmax", "--markdown", "--target", "llvm"]) == 0
    assert capsys.readouterr().out.strip() in text
