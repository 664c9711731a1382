"""Weights that no linker sees: the file is the one that a linker would have written."""

import shutil
import subprocess

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.errors import DamagedFile
from selfbyoc.machine.features import architecture
from selfbyoc.runtime import exporting, integrity
from selfbyoc.runtime.elf import read_image
from selfbyoc.runtime.file_weights.at_the_end import put_at_end

pytestmark = pytest.mark.skipif(architecture("llvm") != "x86_64", reason="x86-64's linkers alone")

RNG = np.random.default_rng(43)
W, V = (RNG.standard_normal(shape, np.float32) for shape in ((260, 130), (33, 260)))
X = RNG.standard_normal((5, 130), np.float32)


def emitted(factor=1):
    given = {"w": W, "v": np.float32(factor) * V}
    shapes = {n: (array.shape, "float32") for n, array in {"x": X, **given}.items()}
    return emit(lambda x, w, v: op.dense(op.relu(op.dense(x, w)), v), shapes, given)


@pytest.fixture(scope="module")
def library():
    return selfbyoc.build(emitted())


@pytest.fixture(scope="module")
def path(library, tmp_path_factory):
    found = tmp_path_factory.mktemp("end") / "model.so"
    library.export_library(found)
    return found


def by_the_linker(library, path, monkeypatch):
    """The same, where a mark is of no use."""
    asked = []
    monkeypatch.setattr(exporting, "put_at_end", lambda *given: asked.append(given[1]))
    library.export_library(path)
    assert [bool(mark) for mark in asked] == [True, False]
    return path


def image(path):
    with path.open("rb") as file:
        return read_image(file, path.stat().st_size)


def test_it_is_the_file_that_a_linker_writes(library, path, tmp_path, monkeypatch):
    """But for what tells it from others: the linker's identity of it, and the checksum."""
    other = by_the_linker(library, tmp_path / "other.so", monkeypatch)
    found, expected = bytearray(path.read_bytes()), bytearray(other.read_bytes())
    own = [n.place for n in image(path).notes if n.owner == b"GNU" or n.kind == integrity.SEAL]
    assert len(own) == 2
    for place in own:
        assert found[place.start : place.stop] != expected[place.start : place.stop]
        found[place.start : place.stop] = expected[place.start : place.stop] = bytes(len(place))
    assert found == expected
    for each in (path, other):
        np.testing.assert_array_equal(selfbyoc.load(each)(X)[0], library(X)[0])


def test_other_weights_are_another_file_to_debuggers(path, tmp_path):
    selfbyoc.build(emitted(2)).export_library(tmp_path / "other.so")
    ids = set()
    for each in (path, tmp_path / "other.so"):
        (place,) = (n.place for n in image(each).notes if n.owner == b"GNU")
        ids.add(each.read_bytes()[place.start : place.stop])
    assert len(ids) == 2


@pytest.mark.parametrize("command", [["strip"], ["strip", "--strip-unneeded"], ["objcopy"]])
def test_strip_keeps_them(library, path, tmp_path, command):
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    copy = shutil.copyfile(path, tmp_path / "copy.so")
    subprocess.run([*command, str(copy)], check=True)
    np.testing.assert_array_equal(selfbyoc.load(copy)(X)[0], library(X)[0])


def test_a_weight_that_is_damaged(path, tmp_path):
    data = bytearray(path.read_bytes())
    data[image(path).loaded[-1].stop - 100] ^= 1
    (tmp_path / "copy.so").write_bytes(data)
    with pytest.raises(DamagedFile, match="checksum"):
        selfbyoc.load(tmp_path / "copy.so")


def linked(folder, *options, before="", after=".zero 64"):
    """A library with a mark."""
    source, path = folder / "mark.s", folder / "mark.so"
    text = f'.section .lrodata.a,"al"\n.balign 64\n{before}.ascii "0123456789abcdef"\n'
    source.write_text(f'{text}.section .lbss.a,"wal",@nobits\n{after}\n')
    command = ["gcc", "-shared", "-nostdlib", *options, str(source), "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


MARK = b"0123456789abcdef"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_what_has_a_segment_of_its_own_and_what_has_not(tmp_path):
    assert put_at_end(linked(tmp_path), MARK, [bytes(10_000)])
    assert len(image(tmp_path / "mark.so").loaded[-1]) == 10_048
    in_one_segment, not_alone = {"after": ""}, {"before": ".quad 1\n"}
    for how in (in_one_segment, not_alone):
        path = linked(tmp_path, **how)
        before = path.read_bytes()
        assert not put_at_end(path, MARK, [bytes(10_000)])
        assert path.read_bytes() == before
    assert not put_at_end(linked(tmp_path), b"fedcba9876543210", [bytes(100)])


def test_what_is_no_library(tmp_path):
    (tmp_path / "no.so").write_bytes(b"\x7fELF")
    assert not put_at_end(tmp_path / "no.so", MARK, [b"1"])
    assert not put_at_end(tmp_path / "no.so", b"", [b"1"])
