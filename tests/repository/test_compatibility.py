"""The table of what this library was tried with: how reports are read and rows are written."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import compatibility
from compatible import environment, tested
from compatible.document import markdown
from compatible.table import BY_NAME, COMBINATIONS, PYTHONS, RELAX, RELAY, USUAL
from compatible.tested import Result, counted

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "makers" / "compatibility.md"
REPORT = """<testsuites><testsuite name="pytest">
<testcase classname="tests.test_a" name="test_one"/>
<testcase classname="tests.test_a" name="test_two[3|x]">
<failure message="assert 1 == 2&#10; + more"/></testcase>
<testcase classname="" name="tests.test_b"><error message="collection failure"/></testcase>
<testcase classname="tests.test_c" name="test_three"><skipped message="no onnx"/></testcase>
</testsuite></testsuites>"""


def result(name, **options):
    tvm = BY_NAME[name].tvm
    given = {"versions": {"python": "3.11.7", "numpy": "2.4.6", "apache-tvm": f"{tvm}.0"},
             "counts": {"passed": 185, "failed": 0, "errors": 0, "skipped": 4},
             "fuzz": "nothing found", **options}  # fmt: skip
    return Result(name, "quick", "Debian 12", "A CPU (AVX-512)", "2026-11-21", "1ebb312", **given)


def rows(*results):
    return markdown({r.name: r.as_json() for r in results}).splitlines()


def test_what_a_report_says():
    counts, failed = counted(REPORT)
    assert counts == {"passed": 1, "failed": 1, "errors": 1, "skipped": 1}
    assert failed == {
        "tests.test_a::test_two[3|x]": "assert 1 == 2",
        "::tests.test_b": "collection failure",
    }


def test_every_dimension_is_covered():
    names = [c.name for c in COMBINATIONS]
    assert len(set(names)) == len(names) == len(BY_NAME)
    for tvm in ("0.27", RELAY):
        mine = [c for c in COMBINATIONS if c.tvm == tvm]
        assert {c.python for c in mine} == set(PYTHONS)
        assert {c.numpy for c in mine} == {"1.26", "2"}
        assert {c.hides_avx512 for c in mine} == {True, False}
    assert {c.tvm for c in COMBINATIONS if c.python == USUAL} == {*RELAX, RELAY}


def test_rows():
    name = "tvm0.27-python3.11-numpy2"
    (row,) = [r for r in rows(result(name)) if "| 185 |" in r]
    assert row == "| Relax 0.27.0 |  | 3.11.7 | 2.4.6 | AVX-512 | quick | 185 | 0 | 4 |"
    missing = [r for r in rows(result(name)) if r.endswith("| not run |  |  |  |")]
    assert len(missing) == len(COMBINATIONS) - 1


def test_what_failed_and_what_could_not_be_tried_is_told_in_notes():
    counts, failed = counted(REPORT)
    found = rows(
        result("tvm0.27-python3.11-numpy2", counts=counts, failed=failed, fuzz="ended with 1"),
        result("tvm0.17-python3.14-numpy2", problem="not tried: no python3.14"),
        result("tvm0.27-python3.14-numpy2", problem="not tried: no python3.14"),
    )
    assert any(r.endswith("| quick (2) | 1 | 2 (1) | 1 |") for r in found)
    assert sum(r.endswith("| none (3) |  |  |  |") for r in found) == 2
    (first,) = [r for r in found if r.startswith("1. ")]
    assert r"`tests.test_a::test_two[3\|x]`: assert 1 == 2" in first
    assert "2. fuzz ended with 1" in found
    assert "3. not tried: no python3.14" in found


def test_a_python_that_is_not_here_leaves_the_earlier_result(tmp_path, monkeypatch, capsys):
    name = "tvm0.27-python3.14-numpy2"
    monkeypatch.setattr(compatibility, "RESULTS", tmp_path)
    assert compatibility._kept(result(name))
    assert compatibility._kept(result(name, problem="not tried: no python3.14"))
    assert compatibility._results()[name]["counts"]["passed"] == 185
    assert "the earlier result stays" in capsys.readouterr().out
    assert not compatibility._kept(result(name, failed={"a": "b"}))


def test_a_python_that_is_nowhere():
    with pytest.raises(environment.Unavailable, match=r"no python9\.9 on the path"):
        environment.interpreter("9.9")
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert environment.interpreter(here) == sys.executable


def test_a_quick_run_names_files_that_are_there():
    for name in ("tvm0.27-python3.11-numpy2", "tvm0.17-python3.11-numpy2"):
        files = tested._files(result(name))
        assert len(files) >= 8
        assert all((ROOT / file).is_file() for file in files)
    everything = Result("tvm0.27-python3.11-numpy2", "all", "", "", "", "")
    assert tested._files(everything) == []


def test_the_document_is_what_the_results_say():
    assert markdown(compatibility._results()) in DOCUMENT.read_text(encoding="utf-8")


def test_the_document_names_every_tvm_and_python():
    text = DOCUMENT.read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if re.match(r"\| Rel[ay]*x? ", line)]
    assert len(table) == len(COMBINATIONS)


def test_a_run_past_its_limit_tells_what_it_found_so_far(tmp_path, monkeypatch):
    """Stopped by SIGINT, pytest writes its report."""
    (tmp_path / "test_long.py").write_text(
        "import time\ndef test_first(): pass\ndef test_second(): time.sleep(600)\n"
    )
    report = tmp_path / "report.xml"
    monkeypatch.setattr(tested, "ROOT", tmp_path)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}"]
    with (tmp_path / "log.txt").open("w") as log:
        status, stopped = tested._within(30.0, command, environment.clean(), log)
    assert (status, stopped) == (2, True)
    counts, _ = counted(report.read_text(), stopped)
    assert counts["passed"] == 1
