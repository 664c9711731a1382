"""The report in a library's note, packed; earlier versions' is plain JSON."""

import base64
import zlib
from dataclasses import replace

import pytest

from selfbyoc.errors import TargetError
from selfbyoc.runtime import note
from selfbyoc.runtime.loading import report_of
from selfbyoc.runtime.note import Note, packed_report, report_data

LARGE = {"records": [{"composite": "dense", "root": f"op_{n}", "ä": None} for n in range(200)]}


def test_it_is_a_small_part():
    packed = packed_report(LARGE)
    assert len(packed) < len(str(LARGE)) / 5
    assert report_data(Note(report=packed)) == LARGE


@pytest.mark.parametrize("data", [None, {}, {"records": []}, LARGE])
def test_what_is_not_packed_is_read_too(data):
    assert report_data(Note(report=data)) == data
    assert report_data(Note(report=packed_report(data))) == data
    assert packed_report(None) is None


def b85(data):
    return base64.b85encode(data).decode()


@pytest.mark.parametrize(
    "text",
    ["", "no", "ä", "\x00", b85(b"no"), b85(zlib.compress(b"no")), b85(zlib.compress(b"{}")[:-2]),
     b85(zlib.compress(b"\xff")), b85(zlib.compress(b'{"records": 7}'))],
)  # fmt: skip
def test_what_is_none_is_an_error(text, tmp_path):
    with pytest.raises(TargetError, match="its note cannot be read"):
        report_of(tmp_path / "a.so", replace(Note(), report=text))


def test_a_bomb_is_no_report(tmp_path, monkeypatch):
    monkeypatch.setattr(note, "_LONGEST", 1 << 16)
    bomb = b85(zlib.compress(b" " * (1 << 20)))
    with pytest.raises(TargetError, match="too long"):
        report_of(tmp_path / "a.so", Note(report=bomb))
