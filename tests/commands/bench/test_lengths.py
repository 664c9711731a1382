"""`bench MODEL.onnx --lengths`: what is asked, who takes part, the table. No time is asserted."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

pytest.importorskip("onnx")

from onnx_models import FLOAT, dense, model, saved, sentence, value

import selfbyoc.commands.bench.run as running
from selfbyoc.__main__ import main
from selfbyoc.commands.bench import inputs
from selfbyoc.commands.bench.contenders import CONTENDERS, OPEN, open_sizes
from selfbyoc.commands.bench.length_tables import length_lines, length_table
from selfbyoc.commands.bench.lengths import LENGTHS, is_even, length_workloads
from selfbyoc.commands.bench.measure import Method
from selfbyoc.commands.bench.performance import markdown
from selfbyoc.commands.bench.records import (
    OURS,
    PEERS,
    STATIC,
    Report,
    Result,
    Row,
    from_json,
    read_report,
)
from selfbyoc.commands.bench.reference import unoptimised
from selfbyoc.commands.bench.roof import Roof
from selfbyoc.commands.bench.run import Selection
from selfbyoc.commands.bench.setting import make_setting
from selfbyoc.errors import InputError
from selfbyoc.models.sizes import Lengths, parse_lengths, parse_sizes
from selfbyoc.runtime.library import Library
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

ROOF = Roof(1, 100.0, {"memory": 10.0}, 2.0, {})
QUICK = Method(turns=1, windows=2, window=0.001, warm=0.001)
BY_NAME = {c.name: c for c in OPEN}
named = pytest.mark.skipif(GENERATION == "relay", reason="Relay has no names for open sizes")


# ---- what is asked


def test_lengths_are_read():
    assert parse_lengths("length=1,16") == Lengths("length", (1, 16))
    assert parse_lengths("7") == Lengths("", (7,))
    assert parse_lengths("a=b=2").symbol == "a=b"
    assert parse_sizes(["batch=1", "rows=20"]) == {"batch": 1, "rows": 20}


@pytest.mark.parametrize(
    "text", ["", "n=", "=1", "n=0", "n=-1", "n=1.5", "n=a", "n=1,,2", "n=2147483648", "1" * 5000]
)
def test_lengths_that_are_none(text):
    with pytest.raises(InputError, match="lengths: expected NAME=1,16,128, sizes of 1 to 21474"):
        parse_lengths(text)
    with pytest.raises(InputError, match="size: expected NAME=1, a size of 1 to 2147483647, not"):
        parse_sizes([text])


def test_what_is_given_twice():
    with pytest.raises(InputError, match="lengths: 16 is given twice"):
        parse_lengths("n=16,1,16")
    with pytest.raises(InputError, match="size: n has two sizes"):
        parse_sizes(["n=1", "n=2"])


@pytest.fixture
def measured(monkeypatch):
    """The names that were asked for, and who takes part; nothing is built."""
    asked = []

    def fake(workload, processes, setting, method, says):
        asked.append((workload.name, list(processes)))
        results = {name: Result(1.0, 1.0, 1.0, 9) for name in processes}
        return Row(
            workload.name, workload.group, 0, 0, results, 0.0, workload.key, length=workload.length
        )

    monkeypatch.setattr(running, "measure", fake)
    monkeypatch.setattr(running, "_roofs", lambda setting, method: (ROOF,))
    return asked


def test_what_does_not_fit(tmp_path, measured, capsys):
    """On Relay the options are looked at too, and then there are no names."""
    path = str(saved(tmp_path / "net.onnx", dense("rows")))
    (tmp_path / "net.so").write_bytes(b"")
    cases = {
        ("--lengths", "2"): "--lengths: expected one MODEL.onnx, found 0",
        (path, path, "--lengths", "2"): "--lengths: expected one MODEL.onnx, found 2",
        (path, "--lengths", "2", "--builds", "2"): "with --lengths everybody builds once",
        (path, "--lengths", "2", "--models"): "--models: of the suite",
        (path, "--size", "rows=2"): "--size fixes what is open beside --lengths",
        (str(tmp_path / "net.so"), "--lengths", "2"): "--lengths: of ONNX models, and net.so is",
    }
    for options, says in cases.items():
        assert main(["bench", *options]) == 1
        assert says in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["bench", path, "--lengths", "rows=0"])
    assert "argument --lengths: expected NAME=1,16,128" in capsys.readouterr().err
    if GENERATION == "relay":
        assert main(["bench", path, "--lengths", "2"]) == 1
        said = capsys.readouterr().err
        assert re.search(
            r"lengths: TVM .* \(Relay\) has no names .* expected apache-tvm 0.26", said
        )
    assert measured == []


@named
def test_symbols_that_do_not_fit(tmp_path, measured, capsys):
    nodes = [("Relu", ["x"], "y", {})]
    ends = [value("x", FLOAT, None, "n")], [value("y", FLOAT, None, "n")]
    paths = {
        "net": dense("rows"), "words": sentence(), "fixed": dense(), "nameless": model(nodes, *ends)
    }  # fmt: skip
    for name, made in paths.items():
        saved(tmp_path / f"{name}.onnx", made)
    for asked, says in {
        "fixed 2": "lengths: no size of fixed is open",
        "net row=2": "lengths: no open size 'row' in net; open: ['rows']; did you mean 'rows'?",
        "words 2": "lengths: expected NAME=1,16,128, for words has the open sizes ['batch', 'leng",
        "words length=2": "lengths: batch of words is open too: fix it, --size batch=1",
        "words 2 --size bath=1": "size: no open size 'bath' in words; open: ['batch', 'length']; d",
        "words length=2 --size length=1": "lengths: no open size 'length' in words; open: ['batch'",
        "words length=2 --shape mask=1x9": "lengths: no size of words is open",
        "net 2 --shape y=2": "shape: no input 'y'; known: ['x']",
        "net 2147483647": "lengths: rows=2147483647 gives input x 51539607528 elements; expected",
        "nameless n=2": "lengths: x_0 of nameless is open too: fix it, --size x_0=1",
        "net 2 --peers torch": "unknown ['torch']; known: ['selfbyoc', 'static', 'onnxruntime',",
        "net 2 --threads 999": "threads: expected 1 to",
    }.items():
        name, lengths, *rest = asked.split()
        assert main(["bench", str(tmp_path / f"{name}.onnx"), "--lengths", lengths, *rest]) == 1
        assert says in capsys.readouterr().err
    assert measured == []


@named
def test_a_row_for_each_length(tmp_path, measured, capsys):
    path, out = str(saved(tmp_path / "words.onnx", sentence())), tmp_path / "a.json"
    options = ["--size", "batch=1", "--peers", "onnxruntime", "--json", str(out), "--resume"]
    who = [n for n in (OURS, STATIC, "onnxruntime") if BY_NAME[n].missing() is None]
    assert main(["bench", path, "--lengths", "length=1,16", *options]) == 0
    assert "Lengths, built once, ms" in capsys.readouterr().out
    assert measured == [(f"words batch=1 length={n}", who) for n in (1, 16)]
    del measured[:]
    assert main(["bench", path, "--lengths", "length=16,33,1", *options]) == 0
    assert measured == [("words batch=1 length=33", who)]  # the others are there
    assert [row.length for row in read_report(out).group(LENGTHS)] == [1, 16, 33]


@named
def test_one_file_for_all_lengths(tmp_path):
    path = saved(tmp_path / "words.onnx", sentence())
    found = length_workloads(path, Lengths("length", (3, 7)), {"batch": 2}, (), tmp_path)
    assert len({w.file for w in found}) == len({w.key for w in found}) == 1
    for workload in found:
        given = inputs.inputs_of(workload.model())
        assert {a.shape for a in given.values()} == {(2, workload.length)}
        assert given["input.ids"].max() < 50
        assert given["token_type"].max() < 2
        assert (given["mask"] == 1).all()
    shaped = ["mask=2x3"]  # it fixes the batch of all inputs, and this input's length
    assert [
        w.name
        for w in length_workloads(
            saved(path, sentence_of_two()), Lengths("length", (3,)), {}, shaped, tmp_path
        )
    ] == ["words mask=2x3 length=3"]


def sentence_of_two():
    """Another file, whose mask has a length of its own."""
    made = sentence()
    made.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "other"
    return made


# ---- who takes part


@named
@pytest.mark.parametrize("name", BY_NAME)
def test_everybody_takes_lengths_one_after_the_other(name, tmp_path, monkeypatch):
    if BY_NAME[name].missing():
        pytest.skip(BY_NAME[name].missing())
    loads, load = [], open_sizes.our_library
    monkeypatch.setattr(open_sizes, "our_library", lambda *args: loads.append(args) or load(*args))
    path = saved(tmp_path / "words.onnx", sentence())
    lengths = Lengths("length", (1, 9, 4))
    for workload in length_workloads(path, lengths, {"batch": 1}, (), tmp_path):
        given = inputs.inputs_of(workload.model())
        found = BY_NAME[name].build(workload.file, given, make_setting(1))
        found.run()
        (wanted,) = unoptimised(workload.file, given)
        assert wanted.shape == (1, workload.length, 31)
        assert first_wrong(found.outputs()[0], wanted, "float32", 24) is None
        assert ("dense" in found.note) == (name in (OURS, STATIC))
    assert len(loads) == {OURS: 1, STATIC: 3}.get(name, 0)


def test_a_length_over_the_bound():
    """An ONNX file has none; a library may."""
    sizes = {"rows": (2, ((0, 0),))}
    library = Library(None, (("x", (None, 24), "float32"),), sizes=sizes)
    with pytest.raises(InputError, match="size rows: expected at most 2, found 3 in axis 0"):
        open_sizes._on_loaded((library, None, int), {"x": np.ones((3, 24), "float32")})


@named
def test_files_have_sizes(tmp_path, monkeypatch):
    path = str(saved(tmp_path / "net.onnx", dense("rows")))
    given = {"x": np.ones((3, 24), "float32")}
    once = BY_NAME[OURS].build(path, given, make_setting(1))
    static = BY_NAME[STATIC].build(path, given, make_setting(1))
    assert once.file_bytes() > static.file_bytes() > 31 * 24 * 4
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert static.file_bytes() == 0


def test_names_are_those_of_the_benchmark():
    known = {c.name: c for c in CONTENDERS}
    assert [c.name for c in OPEN] == [OURS, STATIC, "onnxruntime", "openvino"]
    assert {c.name for c in OPEN if c.is_peer} < set(PEERS)
    assert all(c.needs == known[c.name].needs for c in OPEN if c.is_peer)
    assert Selection(contenders=["openvino"], is_open=True).names(LENGTHS) == [
        OURS, STATIC, "openvino",
    ]  # fmt: skip


# ---- the table


def row(length, ours, static, file_bytes=0, **peers):
    times = {OURS: ours, STATIC: static, **peers}
    results = {
        n: Result(ms, ms, ms, 9, 0.0, 1e-7, note="1 dense", file_bytes=file_bytes)
        for n, ms in times.items()
    }
    return Row(f"net n={length}", LENGTHS, 10**6, 10**4, results, 0.0, "key", length=length)


ROWS = (
    row(1, 1.0, 0.92, onnxruntime=2.0, openvino=4.0),
    row(16, 1.0, 0.92, onnxruntime=3.0, openvino=0.5),
    row(64, 1.0, 1.0, 2 * 10**6, onnxruntime=1.0, openvino=1.5),
)


def test_means_and_counts():
    assert [is_even(found) for found in ROWS] == [True, False, True]
    assert length_lines(ROWS) == [
        "static / ours 0.95 (geometric mean), at 2 of 3 at least 0.95 (below 16: 0.90)",
        "best peer / ours 1.00 (geometric mean), faster at 1 of 3",
        "library file: 2.00 MB built once (1 dense), 2.00 MB for net n=64 alone (1 dense)",
    ]
    assert length_lines([row(64, 2.0, 1.0)]) == [
        "static / ours 0.50 (geometric mean), at 0 of 1 at least 0.95",
        "no peer took part",
        "net n=64: no sizes of files: one was not built, or there is no C++ compiler",
    ]
    assert length_lines([]) == []


def test_tables():
    method = {"windows": 30, "turns": 3, "seconds": 0.02, "builds": 1}
    report = Report({"CPU": "x"}, {"TVM": "0"}, GENERATION, 2, method, (ROOF,), ROWS)
    again = from_json(report.to_json())
    assert again == report
    text = markdown(again)
    assert "| net n=16 | 1.000 | 0.920 | 0.92 | 0.50 | openvino | 3.000 | 0.500 |" in text
    assert "- best peer / ours 1.00 (geometric mean), faster at 1 of 3" in text
    assert "Lost: net n=16 (0.50, openvino)." in text
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(length_table(ROWS))
    assert re.search(r"net n=16 .* 0.92 .* 0.50 .* openvino .* 1.0e-07", console.export_text())


@named
def test_the_whole_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(running, "_roofs", lambda setting, method: (ROOF,))
    monkeypatch.setattr("selfbyoc.commands.bench.command.Method", lambda: QUICK)
    path, out = saved(tmp_path / "net.onnx", dense("rows")), tmp_path / "a.json"
    options = ["--lengths", "2,19", "--peers", "onnxruntime", "--threads", "1", "--json", str(out)]
    assert main(["bench", str(path), *options, "--quick"]) == 0
    assert "static / ours" in capsys.readouterr().out
    for found in read_report(out).rows:
        assert not found.unchecked
        for name in (OURS, STATIC):
            assert found.results[name].counts
            assert found.results[name].relative < 1e-5
        assert found.ours.note == "1 dense"
        assert found.ours.file_bytes > found.results[STATIC].file_bytes > 0
        assert found.flops == 2 * found.length * 24 * 31
    assert main(["bench", "--markdown", str(out)]) == 0
    assert "**Lengths, built once**" in capsys.readouterr().out
