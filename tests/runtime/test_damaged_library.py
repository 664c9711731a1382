"""A library that was cut off or damaged is an error before the system's loader maps it, for which
it would be a SIGBUS; what `strip` leaves, and what other tools wrote, loads.
"""

import contextlib
import os
import shutil
import struct
import subprocess

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.__main__ import main
from selfbyoc.errors import DamagedFile, InputError
from selfbyoc.runtime import integrity, native
from selfbyoc.runtime.elf import read_image
from selfbyoc.runtime.note import read_note

X = np.ones((5, 33), "float32")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    weight = np.random.default_rng(0).standard_normal((17, 33)).astype("float32")
    shapes = {"x": (X.shape, "float32"), "w": (weight.shape, "float32")}
    built = selfbyoc.build(emit(lambda x, w: op.relu(op.dense(x, w)), shapes, {"w": weight}))
    path = tmp_path_factory.mktemp("whole") / "model.so"
    built.export_library(path)
    return path


@pytest.fixture
def copy(library, tmp_path):
    return shutil.copyfile(library, tmp_path / "copy.so")


def changed(path, place, data):
    """Other bytes, in a file that no loader has."""
    with path.open("r+b") as file:
        file.seek(place)
        file.write(data)
    return path


def image(path):
    with path.open("rb") as file:
        return read_image(file, path.stat().st_size)


def place_of(path, kind):
    return next(n.place for n in image(path).notes if (n.owner, n.kind) == (integrity.OWNER, kind))


# ---- cut off


def test_cut_at_any_length(copy):
    size = copy.stat().st_size
    for length in reversed(range(size)):
        os.truncate(copy, length)
        with pytest.raises(DamagedFile) as raised:
            read_note(copy)
        expected = f"{size:,}" if length >= 64 else "at least 64"
        assert str(raised.value) == f"{copy} is cut off: {length:,} of {expected} bytes"
        assert raised.type is DamagedFile


def in_a_fork(act):
    """What it says before it ends, and how it ended: what may crash, or leave a loader confused."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.write(writes, str(act()).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        text = pipe.read().decode()
    return os.waitpid(pid, 0)[1], text


def said(function, *arguments):
    with pytest.raises(InputError) as raised:
        function(*arguments)
    return raised.value


def test_a_program_goes_on(copy):
    """What was SIGBUS without a word."""
    size = copy.stat().st_size
    os.truncate(copy, 20_000)
    text = f"{copy} is cut off: 20,000 of {size:,} bytes"
    assert in_a_fork(lambda: said(selfbyoc.load, copy)) == (0, text)
    with copy.open("r+b") as file:  # it can be mapped, and nothing is there
        file.truncate(size)
    assert "is damaged: expected checksum" in in_a_fork(lambda: said(selfbyoc.load, copy))[1]


@pytest.mark.parametrize("length", [0, 3, 4000, 20_000])
def test_the_commands_say_it_in_one_line(copy, length, capsys):
    size = copy.stat().st_size
    os.truncate(copy, length)
    expected = f"{size:,}" if length >= 64 else "at least 64"
    for command in ("run", "show", "bench"):
        assert main([command, str(copy)]) == 1
        text = f"error: {copy} is cut off: {length:,} of {expected} bytes\n"
        assert capsys.readouterr() == ("", text)


def test_cut_off_while_it_is_read(copy, monkeypatch):
    size, once = copy.stat().st_size, integrity._crc

    def cut(handle, part):
        os.truncate(copy, 20_000)
        return once(handle, part)

    monkeypatch.setattr(integrity, "_crc", cut)
    with pytest.raises(DamagedFile, match=r"cut off: 20,000 of [\d,]+ bytes"):
        read_note(copy)
    assert copy.stat().st_size < size


# ---- damaged


def test_other_bytes(copy):
    """In code, in weights, in the note, in the checksum, in the headers of segments."""
    found = image(copy)
    code, table = found.loaded[1], found.headers[1]
    places = {
        "code": code.start + 100, "data": found.loaded[2].start + 64, "table": table.start + 16,
        "note": place_of(copy, integrity.TEXT).start + 20,
        "seal": place_of(copy, integrity.SEAL).start + 8,
    }  # fmt: skip
    good = copy.read_bytes()
    for name, place in places.items():
        changed(copy, place, bytes([good[place] ^ 1]))
        with pytest.raises(DamagedFile, match=r"copy\.so is (damaged|cut off): "):
            selfbyoc.load(copy)
        if name == "code":
            with pytest.raises(
                DamagedFile,
                match=r"damaged: expected checksum \w{8} of [\d,]+ bytes, found checksum \w{8} of",
            ):
                read_note(copy)
        copy.write_bytes(good)
    assert read_note(copy).versions


def test_a_page_of_zeros_and_pages_that_changed_places(copy):
    """What a crash of the machine leaves."""
    good, page = copy.read_bytes(), 4096
    code = image(copy).loaded[1].start
    first, second = good[code : code + page // 4], good[code + page // 4 : code + page // 2]
    for data in (bytes(page // 4), second + first):
        changed(copy, code, data)
        with pytest.raises(DamagedFile, match="damaged: expected checksum"):
            read_note(copy)
        copy.write_bytes(good)


def test_parts_and_threads(library, monkeypatch):
    """Large files are read in parts, by several threads: the parts are compared in order."""
    before, path = read_note(library).inputs, library.with_name("parts.so")
    shutil.copyfile(library, path)
    monkeypatch.setattr(integrity, "_PART", 4096)
    monkeypatch.setattr(integrity, "_READ", 1000)
    with pytest.raises(DamagedFile):  # parts are part of what was written down
        read_note(path)
    selfbyoc.seal(path)
    assert read_note(path).inputs == before
    good = path.read_bytes()
    start = image(path).loaded[2].start
    a, b = good[start : start + 4096], good[start + 4096 : start + 8192]
    changed(path, start, b + a)
    with pytest.raises(DamagedFile):
        read_note(path)


def test_a_checksum_that_is_gone(copy):
    """The table says that nothing is a note: the note is still found, and says that one was."""
    table = image(copy).headers[1]
    data = copy.read_bytes()
    for at in range(table.start, table.stop, 56):
        if struct.unpack_from("<I", data, at) == (4,):
            changed(copy, at, struct.pack("<I", 0))
    with pytest.raises(DamagedFile, match=r"copy\.so is damaged: its checksum is gone"):
        read_note(copy)


def test_a_checksum_of_no_type_of_ours(copy):
    """The text is a note of ours, so there must be one."""
    changed(copy, place_of(copy, integrity.SEAL).start - 16, struct.pack("<I", 3))
    with pytest.raises(DamagedFile, match=r"copy\.so is damaged: its checksum is gone"):
        read_note(copy)


def test_headers_that_cannot_be(copy):
    good = copy.read_bytes()
    for place, text, words in (
        (54, struct.pack("<H", 55), "its header says 55 bytes for a segment; expected 56"),
        (32, struct.pack("<Q", 1 << 63), "is cut off: "),
        (40, struct.pack("<Q", 1 << 62), "is cut off: "),
    ):
        changed(copy, place, text)
        with pytest.raises(DamagedFile, match=words):
            read_note(copy)
        copy.write_bytes(good)


# ---- whole


@pytest.mark.parametrize(
    "command",
    [["strip"], ["strip", "-g"], ["strip", "--strip-unneeded", "-R", ".comment"], ["llvm-strip"],
     ["objcopy"]],
    ids=" ".join,
)  # fmt: skip
def test_strip_keeps_it(library, copy, command):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    out = ["-o"] if "strip" in command[0] else []
    paths = [copy.with_name(name) for name in ("stripped.so", "damaged.so")]
    for path in paths:
        subprocess.run([*command, str(copy), *out, str(path)], check=True)
    found = selfbyoc.load(paths[0])(X)[0]
    np.testing.assert_array_equal(found, selfbyoc.load(library)(X)[0])
    changed(paths[1], image(paths[1]).loaded[1].start + 100, b"\xcc\xcc")
    with pytest.raises(DamagedFile, match="damaged: expected checksum"):
        read_note(paths[1])


def test_what_was_changed_on_purpose_is_sealed_again(copy):
    """Here the owner of a note of the compiler's, which nobody reads."""
    (build_id,) = (n.place for n in image(copy).notes if n.owner == b"GNU")
    changed(copy, build_id.start - 4, b"HER\0")
    with pytest.raises(DamagedFile):
        selfbyoc.load(copy)
    selfbyoc.seal(str(copy))
    assert selfbyoc.load(copy)(X)[0].shape == (5, 17)


def test_what_has_no_place_for_a_checksum(library, tmp_path):
    (tmp_path / "a.so").write_bytes(b"text")
    with pytest.raises(InputError, match=r"a\.so has no place for a checksum; expected what exp"):
        selfbyoc.seal(tmp_path / "a.so")
    with pytest.raises(InputError, match=r"none\.so cannot be read: No such file"):
        selfbyoc.seal(tmp_path / "none.so")
    shutil.copyfile(library, tmp_path / "cut.so")
    os.truncate(tmp_path / "cut.so", 5000)
    with pytest.raises(DamagedFile, match="cut off: 5,000 of"):
        selfbyoc.seal(tmp_path / "cut.so")


def unsealed(path):
    """As an earlier version wrote it: the note is a string, and there is no checksum."""
    data = path.read_bytes()
    text = data[place_of(path, integrity.TEXT).start :].partition(b"\0")[0]
    for note in image(path).notes:
        if note.owner == integrity.OWNER:
            changed(path, note.place.start - 12, b"nobodys\0")
    earlier = text.replace(b', "is_sealed": true', b"")
    assert earlier != text
    return changed(path, place_of_text(path), earlier + b"\0")


def place_of_text(path):
    return path.read_bytes().index(b'selfbyoc.note={"')


def test_a_library_of_an_earlier_version_loads(library, copy):
    cut = shutil.copyfile(unsealed(copy), copy.with_name("cut.so"))
    before, after = selfbyoc.load(library), selfbyoc.load(copy)
    np.testing.assert_array_equal(after(X)[0], before(X)[0])
    assert (after.inputs, after.report) == (before.inputs, before.report)
    os.truncate(cut, 20_000)
    with pytest.raises(DamagedFile, match="cut off: 20,000 of"):
        selfbyoc.load(cut)


def test_what_another_tool_wrote(library, tmp_path, capsys):
    """Its sizes are asked, and nothing else is known of it."""
    weight = np.ones((17, 33), "float32")
    shapes = {"x": (X.shape, "float32"), "w": (weight.shape, "float32")}
    built = selfbyoc.build(emit(lambda x, w: op.dense(x, w), shapes, {"w": weight}))
    path = tmp_path / "other.so"
    built.native.export_library(str(path))
    cut = shutil.copyfile(path, tmp_path / "cut.so")
    assert main(["show", str(path)]) == 1
    assert "other.so: another tool wrote it" in capsys.readouterr().err
    np.testing.assert_allclose(selfbyoc.load(path, built)(X)[0], 33, rtol=1e-5)
    os.truncate(cut, 20_000)
    for call in (lambda: selfbyoc.load(cut, built), lambda: read_note(cut)):
        with pytest.raises(DamagedFile, match=r"cut\.so is cut off: 20,000 of"):
            call()


def test_what_is_no_file(tmp_path):
    """Nobody waits for a pipe's writer."""
    os.mkfifo(tmp_path / "pipe.so")
    with pytest.raises(InputError, match="expected a regular file"):
        selfbyoc.load(tmp_path / "pipe.so")


# ---- files that change while they are loaded


def another(path, number):
    plus = {"c": np.full((1,), number, "float32")}
    shapes = {"x": (X.shape, "float32"), "c": ((1,), "float32")}
    selfbyoc.build(emit(lambda x, c: op.add(op.softmax(x), c), shapes, plus)).export_library(path)


def test_export_gives_a_new_file(tmp_path):
    """Under a loaded library's name: the loaded one stays what it was."""
    path = tmp_path / "model.so"
    another(path, 1)
    first, number = selfbyoc.load(path), path.stat().st_ino
    with path.open("rb"):  # so its number is not given again
        another(path, 2)
        assert path.stat().st_ino != number
        np.testing.assert_allclose(first(X)[0], 1 + 1 / 33, rtol=1e-5)
        np.testing.assert_allclose(selfbyoc.load(path)(X)[0], 2 + 1 / 33, rtol=1e-5)
    with pytest.raises(InputError, match=r"model\.so is not the file any more that was loaded"):
        first.export_library(tmp_path / "again.so")
    assert not (tmp_path / "again.so").exists()


def test_written_into_while_it_is_loaded(library, tmp_path):
    """The loader knows the file by its number, and hands out what is there no more."""
    path = tmp_path / "1.so"
    shutil.copyfile(library, path)
    another(tmp_path / "2.so", 2)

    def written_into():
        loaded = selfbyoc.load(path)
        shutil.copyfile(tmp_path / "2.so", path)
        return loaded and said(selfbyoc.load, path)

    status, text = in_a_fork(written_into)
    assert status == 0
    assert text.startswith(f"{path} was written into while this process has it loaded")


def test_a_files_number_is_given_again(library, copy, monkeypatch):
    """Of a file that is not loaded any more."""
    selfbyoc.load(copy)
    stamps = {key: (*key, 0, 0) for key in native._stamps}
    monkeypatch.setattr(native, "_stamps", stamps)
    monkeypatch.setattr(native, "_is_mapped", lambda *file: False)
    assert selfbyoc.load(copy)(X)[0].shape == (5, 17)


def test_mapped_or_not(library, tmp_path):
    loaded, found = selfbyoc.load(library), library.stat()
    assert native._is_mapped(found.st_dev, found.st_ino, library)
    assert native._is_mapped(0, found.st_ino, library.resolve())
    (tmp_path / "a").write_text("a")
    assert loaded.file == library
    assert not native._is_mapped(found.st_dev, (tmp_path / "a").stat().st_ino, tmp_path / "a")
