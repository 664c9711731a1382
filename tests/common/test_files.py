"""Files that a user names are data: each field checked, bounded in size, written whole or not."""

import dataclasses
import errno
import json
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
from not_files import put

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.commands.bench.networks import read_safetensors
from selfbyoc.commands.bench.records import METHOD, Report, Result, Row, read_report, write_report
from selfbyoc.commands.bench.roof import Roof
from selfbyoc.commands.fuzz.program import from_json as case
from selfbyoc.common import structured
from selfbyoc.common.files import read_text, write_text
from selfbyoc.errors import InputError, OpInfoError, SelfbyocError, TargetError
from selfbyoc.runtime.loading import report_of, target_of
from selfbyoc.runtime.note import read_note
from selfbyoc.tvm import module_with_attr, target_dict

ROOF = Roof(1, 50.0, {"L2": 30.0, "memory": 10.0}, 2.0, {"L2": 1 << 20})
RESULT = Result(1.0, 1.0, 1.0, 3)
ROW = Row("a", "named", 10, 10, {"selfbyoc": RESULT, "torch": Result(skipped="absent")})
METHODS = dict.fromkeys(METHOD, 3.0)
REPORT = Report({"CPU": "x"}, {"TVM": "0"}, "relax", 1, METHODS, (ROOF,), (ROW,), "llvm")

ODD = [
    None, True, -1, 0, 7, 1 << 62, 10**400, 1e308, float("inf"), "", "x" * 10_000, "\x1b[2J\0",
    [], [[]], {}, {"a": 1}, [None],
]  # fmt: skip


def places(value, path=()):
    """Every place in JSON data."""
    yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from places(inner, (*path, key))


def changed(data, path, value):
    """A copy of it with another value at one place; `...` takes the place away."""
    copy = json.loads(json.dumps(data))
    if not path:
        return value
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return copy


def crafted(data, seed, count):
    """Texts that are nearly this one's JSON."""
    rng, every = random.Random(seed), list(places(data))
    for _ in range(count):
        path = rng.choice(every)
        yield json.dumps(changed(data, path, rng.choice([*ODD, ...] if path else ODD)))
    text = json.dumps(data)
    for _ in range(count // 4):
        at = rng.randrange(len(text))
        yield text[:at] + rng.choice(["", "\0", "]", "{", '"', "9" * 5000]) + text[at + 1 :]
    yield from ("", "null", "[" * 100_000, '{"a":' * 100_000, "NaN", text[: len(text) // 2])


def refused(read, text):
    """Whether it is refused, by an error of ours in a line of bounded length."""
    try:
        read(text)
    except SelfbyocError as err:
        said = str(err)
    else:
        return False
    assert len(said) < 1500, said
    return True


def test_reports_of_the_benchmark(tmp_path):
    """Each is refused with the field, or is one that tables and plots can show."""
    from selfbyoc.commands.bench.performance import markdown
    from selfbyoc.commands.bench.roofline import roofline

    path = tmp_path / "a.json"
    write_report(path, REPORT)
    assert read_report(path) == dataclasses.replace(REPORT, rows=read_report(path).rows)

    def read(text):
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        found = read_report(path)
        markdown(found), roofline(found), found.to_json()

    count = [refused(read, text) for text in crafted(json.loads(path.read_text()), 0, 300)]
    assert 200 < sum(count) < len(count)


FIELDS = {
    "rows[0].results.selfbyoc.milliseconds: found 'fast'; expected a number": (
        ("rows", 0, "results", "selfbyoc", "milliseconds"), "fast"),
    "rows[0].results.selfbyoc.milliseconds: found 0; expected a number above 0": (
        ("rows", 0, "results", "selfbyoc", "milliseconds"), 0),
    "rows[0].flops: found 1.5; expected a whole number of 64 bits": (("rows", 0, "flops"), 1.5),
    "rows[0].flops: found a larger number": (("rows", 0, "flops"), 10**400),
    "rows[0].name is missing; expected str": (("rows", 0, "name"), ...),
    "rows: found {}; expected a list": (("rows",), {}),
    "roofs[0].bandwidth.memory is missing": (("roofs", 0, "bandwidth", "memory"), ...),
    "more: expected one of facts, versions": (("more",), 1),
}  # fmt: skip


@pytest.mark.parametrize("said", FIELDS, ids=str)
def test_an_error_names_file_and_field(said, tmp_path):
    path = tmp_path / "a.json"
    data = changed(json.loads(REPORT.to_json()), *FIELDS[said])
    path.write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        read_report(path)
    assert str(caught.value).startswith(f"{path}: this is no report of the benchmark: {said}")


def module():
    program = lambda x, w: op.relu(op.dense(x, w))  # noqa: E731
    return emit(program, {"x": ((3, 8), "float32"), "w": ((4, 8), "float32")})


def test_explanations():
    found = selfbyoc.explain(module())
    read = selfbyoc.Explanation.from_json
    assert read(found.to_json()) == found
    texts = list(crafted(json.loads(found.to_json()), 1, 200))
    assert sum(refused(lambda t: str(read(t)), text) for text in texts) > 100


def test_the_report_that_a_module_carries():
    """A module may come from a file: what its attributes say is data, too."""
    parted = selfbyoc.partition_for_tefuse(module())
    text = str(parted.attrs["tefuse.report"])

    def reported(told):
        return selfbyoc.report(module_with_attr(parted, "tefuse.report", told))

    for bad in crafted(json.loads(text), 2, 60):
        refused(lambda t: str(reported(t)), bad)
    with pytest.raises(InputError, match=r"tefuse.report is damaged: records is missing"):
        reported("{}")
    with pytest.raises(InputError, match=r"tefuse.layouts is damaged: moved: found 'x'"):
        selfbyoc.explain(module_with_attr(module(), "tefuse.layouts", '{"moved": "x"}'))


def test_cases_of_the_fuzzer():
    node = {"kind": "input", "shape": [2, 3], "dtype": "float32"}
    relu = {"kind": "relu", "inputs": [0], "attrs": {"axis": [1]}}
    data = {"seed": 0, "grown": ["a"], "nodes": [node, relu], "outputs": [1]}
    case(json.dumps(data))
    found = [refused(case, text) for text in crafted(data, 3, 200)]
    assert sum(found) > 100
    for shape in ([1 << 40], [1 << 20, 1 << 20], [-1], [0, -3]):
        with pytest.raises(InputError, match="node 0 of the case has the shape"):
            case(json.dumps(changed(data, ("nodes", 0, "shape"), shape)))


def test_op_info():
    from selfbyoc.codegen.info.op_record import from_json

    with pytest.raises(OpInfoError, match="nested too deeply"):
        from_json("[" * 100_000)


def test_weights(tmp_path):
    path, array = tmp_path / "m.safetensors", np.arange(6, dtype=np.float32)
    good = {"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {}}

    def write(text):
        head = text.encode("utf-8", "surrogatepass")
        path.write_bytes(len(head).to_bytes(8, "little") + head + array.tobytes())

    write(json.dumps(good))
    np.testing.assert_array_equal(read_safetensors(path)["a"], array.reshape(2, 3))
    found = []
    for text in crafted(good, 4, 200):
        write(text)
        found.append(refused(lambda _: read_safetensors(path), ""))
    assert sum(found) > 100
    write(json.dumps(changed(good, ("a", "shape"), [1 << 40])))
    with pytest.raises(InputError, match=r"a.data_offsets: found 0 to 24 of 24 bytes; expected "):
        read_safetensors(path)


def whole(path):
    """A note, with what is made of it when it is asked for."""
    note = read_note(path)
    return note, target_of(path, note), report_of(path, note)


def test_notes_in_libraries(tmp_path):
    path, begin = tmp_path / "a.so", b"selfbyoc.note="
    tensor = ["x", [1, None], "float32"]
    parted = selfbyoc.partition_for_tefuse(module())
    good = {
        "target": target_dict(selfbyoc.codegen.target.host_target()),
        "inputs": [tensor], "outputs": [tensor], "versions": {"tvm": "0.27"},
        "report": selfbyoc.report(parted).data(),
    }  # fmt: skip
    path.write_bytes(begin + json.dumps(good).encode() + b"\0")
    assert report_of(path, read_note(path)) == selfbyoc.report(parted)
    found = []
    for text in crafted(json.loads(json.dumps(good)), 5, 200):
        path.write_bytes(begin + text.encode("utf-8", "surrogatepass") + b"\0")
        found.append(refused(lambda _: whole(path), ""))
    assert sum(found) > 50
    for bad in ({"target": {"kind": "none"}}, {"inputs": [["x", [1.5], "float32"]]}):
        path.write_bytes(begin + json.dumps(bad).encode() + b"\0")
        with pytest.raises(TargetError, match="its note cannot be read"):
            whole(path)


@pytest.mark.parametrize("how", ["fifo", "folder", "device", "large", "bytes", "none", "nul"])
def test_what_is_no_text_file(how, tmp_path):
    path = tmp_path / "a.json"
    if not put(path, how) and how == "bytes":
        path.write_bytes(b"\xff")
    path = {"device": type(path)("/dev/zero"), "nul": tmp_path / "a\0b"}.get(how, path)
    with pytest.raises(InputError, match="cannot be read"):
        read_report(path)


# ---- writing


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_report(path, REPORT)
    before = path.read_text()

    def full(self, data):
        with open(self, "wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(InputError, match=r"a\.json cannot be written: No space left on device"):
        write_report(path, REPORT)
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text() == before


def test_what_a_killed_process_left_is_swept(tmp_path):
    old, young, other = (tmp_path / n for n in (".a.1.partial", ".a.2.partial", ".b.1.partial"))
    for part in (old, young, other):
        part.write_text("half")
    for part in (old, other):
        os.utime(part, (time.time() - 7200,) * 2)
    write_text(tmp_path / "a", "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".a.2.partial", ".b.1.partial", "a"]


def test_links_and_pipes_stay_what_they_are(tmp_path):
    (tmp_path / "to").write_text("old")
    (tmp_path / "link").symlink_to("to")
    write_text(tmp_path / "link", "new")
    assert ((tmp_path / "link").is_symlink(), read_text(tmp_path / "to")) == (True, "new")
    write_text(tmp_path / ("x" * 255), "long")
    read, write = os.pipe()
    write_text(Path(f"/proc/self/fd/{write}"), "told")
    assert os.read(read, 10) == b"told"
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_names_of_no_file(name, tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        write_text(tmp_path / name, "text")


def test_checked():
    kind = dict[str, tuple[int | None, ...]]
    assert structured.checked(kind, {"a": [1, None]}, "") == {"a": (1, None)}
    with pytest.raises(ValueError, match=r"a\[1\]: found 'x'; expected a whole number"):
        structured.checked(kind, {"a": [1, "x"]}, "")
