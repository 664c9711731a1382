"""Record files full of what others wrote: named in a warning, and nothing else happens."""

import json
import os

import numpy as np
import pytest
from recorded import BEST, built_with_warning, is_right, model, record_of, task_of

import selfbyoc
from selfbyoc.codegen.records import record as records
from selfbyoc.common import trusted
from selfbyoc.errors import InputError, RecordWarning, TuningError
from selfbyoc.tvm import GENERATION

PLACE = {"generation": GENERATION, "target": {"kind": "llvm"}, "cores": 2}
GOOD = {
    "workload": "w", "composite": "c", "about": "a", "place": PLACE, "status": "chosen",
    "decisions": {}, "seconds": 1e-3, "default_seconds": 2e-3,
}  # fmt: skip
NESTED = json.loads("[" * 200 + "]" * 200)
GET = "GetSBlock" if GENERATION == "relax" else "GetBlock"
BEGIN = [[GET, [], ["dense", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]]]
CRAFTED = [
    {"workload": 1}, {"workload": ["a"]}, {"workload": None}, {"composite": {}}, {"about": 3},
    {"status": []}, {"status": "best"}, {"decisions": [1]}, {"decisions": None}, {"code": 1},
    {"decisions": {"a": NESTED}}, {"seconds": "1"}, {"seconds": float("nan")}, {"seconds": -1.0},
    {"seconds": float("inf")}, {"seconds": True}, {"default_seconds": {}}, {"made_by": 1},
    {"made_by": {"date": 1}}, {"error": []}, {"more": 1}, {"place": 1}, {"place": {}},
    {"place": PLACE | {"cores": "2"}}, {"place": PLACE | {"target": "llvm"}},
    {"place": PLACE | {"generation": 1}}, {"place": PLACE | {"more": 1}},
    {"trace": 1}, {"trace": []}, {"trace": [1, 2]}, {"trace": NESTED}, {"trace": [[["Split"]], []]},
    {"trace": [[[1, [], [], []]], []]}, {"trace": [[], [[0, 0]]]},
    {"trace": [BEGIN, [[-1, 0]]]}, {"trace": [BEGIN, [[2, 0]]]}, {"trace": [BEGIN, [["0", 0]]]},
    {"trace": [[*BEGIN, ["ComputeInline", [None], [], []]], []]},
    {"trace": [[*BEGIN, ["Fuse", [None], [1], ["f"]]], []]},
    {"trace": [[*BEGIN, ["Split", ["l1", None, None], [1], ["a", "b"]]], []]},
    {"trace": [[*BEGIN, ["Split", ["l1", None, "b0"], [1, 0], ["a", "b"]]], []]},
    {"trace": [[*BEGIN, ["Split", ["l1", None, "None"], [1], ["a", "b"]]], []]},
    {"trace": [[*BEGIN, ["Split", [], [1], ["a", "b"]]], []]},
    {"trace": [[*BEGIN, ["Annotate", ["b0", '"x"'], ["pragma_import_llvm"], []]], []]},
    {"trace": [[*BEGIN, ["UnsafeSetDType", ["b0"], [0, "int8"], []]], []]},
]  # fmt: skip


def said(places):
    with pytest.warns(RecordWarning) as caught:
        assert records.read(places) == []
    return [str(w.message) for w in caught]


@pytest.mark.parametrize("changed", CRAFTED, ids=range(len(CRAFTED)))
def test_what_is_no_record_is_named(tmp_path, changed):
    (tmp_path / records.FILE).write_text(json.dumps(GOOD) + "\n")
    assert len(records.read(tmp_path)) == 1
    (tmp_path / records.FILE).write_text(json.dumps(GOOD | changed) + "\n")
    (text,) = said(tmp_path)
    assert f"{records.FILE} line 1 is not read: " in text
    assert len(text) < len(str(tmp_path)) + 200


@pytest.mark.parametrize("factors", [[None, 8], ["None", 8], ["v3", None], [4, "v3", 2], [64, 1]])
def test_a_split_as_tvm_writes_it_is_read(tmp_path, factors):
    """TVM 0.17 writes the open factor as a text."""
    split = ["Split", ["l1", *factors], [1, 0], ["a", "b"]]
    (tmp_path / records.FILE).write_text(json.dumps(GOOD | {"trace": [[*BEGIN, split], []]}))
    assert len(records.read(tmp_path)) == 1


@pytest.mark.parametrize("name", ["workload", "composite", "about", "place", "status"])
def test_a_missing_field_is_named(tmp_path, name):
    (tmp_path / records.FILE).write_text(json.dumps({k: v for k, v in GOOD.items() if k != name}))
    assert f"{name} is missing" in said(tmp_path)[0]


@pytest.mark.parametrize("line", ["[" * 100_000, '{"a":' * 100_000, "\ud800", "7", "9" * 10_000])
def test_what_is_no_json_object_is_named(tmp_path, line):
    (tmp_path / records.FILE).write_bytes(line.encode("utf-8", "surrogatepass"))
    assert "line 1 is not read" in said(tmp_path)[0]


@pytest.mark.parametrize("decisions", [{"rows": [[1]]}, {"rows": {}}, {"rows": "10"}, {"": None}])
def test_decisions_that_are_none_do_not_end_a_build(tmp_path, decisions):
    rng = np.random.default_rng(0)
    mod, params = model(rng)
    records.append(tmp_path, record_of(task_of(mod, params), decisions, code="x"))
    library, applied, _ = built_with_warning([tmp_path], mod, params)
    assert applied.used == {}
    assert is_right(library, params, rng.standard_normal((30, 7)).astype("float32"))


@pytest.mark.parametrize("how", ["fifo", "/dev/zero", "large", "link"])
def test_what_is_no_file_neither_hangs_nor_fills_memory(tmp_path, how):
    path = tmp_path / records.FILE
    if how == "fifo":
        os.mkfifo(path)
    elif how == "large":
        path.touch()
        os.truncate(path, 1 << 40)
    else:
        (tmp_path / "there").write_text(json.dumps(GOOD))
        path.symlink_to(tmp_path / "there" if how == "link" else how)
    (text,) = said(tmp_path)
    assert "is not read: it " in text
    if how == "large":
        return
    with pytest.raises(OSError, match=r"it is a (pipe|link)"):
        records.begin(tmp_path)
    rng = np.random.default_rng(0)
    with pytest.raises(TuningError, match="cannot be written: it is a"):
        selfbyoc.tune(model(rng)[0], work_dir=tmp_path, trials=1)


def test_a_link_that_is_named_is_followed(tmp_path):
    (tmp_path / "there").write_text(json.dumps(GOOD))
    (tmp_path / "here").symlink_to("there")
    assert len(records.read(tmp_path / "here")) == 1
    (tmp_path / "zero").symlink_to("/dev/zero")
    assert "expected a regular file" in said(tmp_path / "zero")[0]
    (tmp_path / "nowhere").symlink_to("none")
    with pytest.raises(InputError, match="there is no"):
        records.read(tmp_path / "nowhere")


def test_another_users_records_are_not_read(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    mod, params = model(rng)
    records.append(tmp_path, record_of(task_of(mod, params), BEST))
    (tmp_path / records.FILE).chmod(0o664)  # umask 002
    assert len(records.read(tmp_path)) == 1
    (tmp_path / records.FILE).chmod(0o646)
    assert "others can write to it (mode 646)" in said(tmp_path)[0]
    (tmp_path / records.FILE).chmod(0o644)
    monkeypatch.setattr(trusted, "USERS", (12345,))
    assert f"belongs to user {os.getuid()}; expected 12345" in said(tmp_path)[0]
    with pytest.warns(RecordWarning), selfbyoc.apply_records(tmp_path) as applied:
        selfbyoc.build(mod, params=params, cache=False)
    assert applied.used == {}


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path, monkeypatch):
    records.append(tmp_path, records.Record.from_json(json.dumps(GOOD)))
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:10]))
    with pytest.raises(OSError, match=f"{records.FILE}: only 10 bytes"):
        records.append(tmp_path, records.Record.from_json(json.dumps(GOOD)))
    monkeypatch.undo()
    records.append(tmp_path, records.Record.from_json(json.dumps(GOOD)))
    with pytest.warns(RecordWarning, match="line 2 is not read"):
        assert len(records.read(tmp_path)) == 2
