"""A cache folder full of what others put there: nothing of it runs, hangs or ends a build."""

import json
import logging
import os
import subprocess
import sys
import textwrap
import zlib

import pytest
from cached import built, entries, uses
from not_files import put

from selfbyoc.codegen.cache import entry, store
from selfbyoc.codegen.cache.store import Store
from selfbyoc.common import trusted

SECRET = b"s" * 32


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    monkeypatch.setattr(store, "_told", set())


@pytest.fixture
def kept(tmp_path):
    """A store with one entry, and the path of that."""
    found = Store(tmp_path)
    found.put("key", "text", {})
    assert found.get("key") == "text"
    return found, tmp_path / "key.kernel"


def said(caplog):
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def crafted(fields, secret=SECRET):
    """An entry as `packed` writes it, of any JSON text."""
    data = zlib.compress(fields.encode() if isinstance(fields, str) else fields, 1)
    return entry._MAGIC + entry._signature(secret, data) + data


FIELDS = {
    "no key": {"about": {}, "text": "text"},
    "no text": {"key": "key", "about": {}},
    "a number as text": {"key": "key", "about": {}, "text": 7},
    "a list as what is said of it": {"key": "key", "about": [], "text": "text"},
    "a number": 7,
    "a list": [1, 2],
    "null": None,
}


@pytest.mark.parametrize("fields", FIELDS.values(), ids=FIELDS)
def test_entries_without_their_fields_are_dropped(kept, fields):
    found, path = kept
    path.write_bytes(crafted(json.dumps(fields), (path.parent / "secret").read_bytes()))
    assert found.entries() == []
    assert found.get("key") is None
    assert not path.exists()


@pytest.mark.parametrize(
    "body",
    ["[" * 1_000_000, "{" * 10, "\ud800".encode("utf-8", "surrogatepass"), b"\x00" * (64 << 20)],
    ids=["nested", "cut", "not UTF-8", "more than any kernel"],
)
def test_entries_that_are_no_json_are_dropped(kept, body):
    found, path = kept
    path.write_bytes(crafted(body, (path.parent / "secret").read_bytes()))
    assert found.entries() == []
    assert found.get("key") is None
    assert not path.exists()


def test_an_entry_that_was_not_written_here_is_not_parsed(kept, monkeypatch, caplog):
    found, path = kept
    monkeypatch.setattr(entry, "_entry", None)
    path.write_bytes(crafted(json.dumps({"key": "key", "about": {}, "text": "text"})))
    assert found.get("key") is None
    assert ["was not written here" in text for text in said(caplog)] == [True]


def test_machine_code_from_elsewhere_is_not_assembled(tmp_path):
    """LLVM ends the process at assembly that is none: what another folder's owner wrote, however
    well formed, never gets there.
    """
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    assert uses(built(mine)) == (0, 1)
    assert uses(built(theirs)) == (0, 1)
    other = Store(theirs)
    for found in other.entries():
        if not found.about.get("note"):
            text = other.get(found.key)
            other.put(found.key, f"{text}\n\tnosuchop %rax, %zz\n", found.about)
        (mine / f"{found.key}.kernel").write_bytes((theirs / f"{found.key}.kernel").read_bytes())
    assert uses(built(mine)) == (0, 1)
    assert uses(built(mine)) == (1, 0)


def test_a_note_that_names_no_key_leads_nowhere(tmp_path):
    assert uses(built(tmp_path)) == (0, 1)
    found = Store(tmp_path)
    for note in found.entries():
        if note.about.get("note"):
            found.put(note.key, "../../etc/passwd", note.about)
    assert uses(built(tmp_path)) == (1, 0)  # scheduled again


@pytest.mark.parametrize("key", ["../key", "a/b", "", ".", "a\0b", "k" * 200])
def test_keys_are_no_paths(kept, key):
    found, _ = kept
    assert found.get(key) is None
    with pytest.raises(ValueError, match="is no key"):
        found.put(key, "text", {})


def replaced(path, how):
    path.unlink()
    if not put(path, how):
        path.symlink_to(how)


ODD = ["fifo", "folder", "large", "/dev/zero", "/dev/stdin", "/etc/passwd", "nowhere"]


@pytest.mark.parametrize("how", ODD)
def test_what_is_no_file_neither_hangs_nor_fills_memory(kept, how, caplog):
    found, path = kept
    replaced(path, how)
    assert found.entries() == []
    assert found.get("key") is None
    assert said(caplog)
    assert os.path.lexists(path) == (how == "folder")  # dropped; a link, not what it leads to
    assert os.path.exists("/etc/passwd")
    found.put("key", "again", {})
    assert found.get("key") == (None if how == "folder" else "again")


@pytest.mark.parametrize("how", ["fifo", "/dev/zero", "large"])
def test_a_secret_that_is_no_file_is_no_secret(kept, how, caplog):
    found, path = kept
    replaced(path.parent / "secret", how)
    for _ in range(3):
        assert found.get("key") is None
        found.put("other", "text", {})
    assert ["is not used: secret: " in text for text in said(caplog)] == [True]


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, mode, caplog):
    place = tmp_path / "cache"
    assert uses(built(place)) == (0, 1)
    before = sorted(place.iterdir())
    place.chmod(mode)
    assert uses(built(place)) == (0, 1)
    assert uses(built(place)) == (0, 1)
    assert sorted(place.iterdir()) == before
    (text,) = said(caplog)
    assert f"{place} is not used: others can write to it (mode {mode:o})" in text
    place.chmod(0o755)
    assert uses(built(place)) == (1, 0)


def test_a_folder_of_another_user_is_not_used(tmp_path, monkeypatch, caplog):
    assert uses(built(tmp_path)) == (0, 1)
    monkeypatch.setattr(trusted, "USERS", (12345,))
    assert uses(built(tmp_path)) == (0, 1)
    (text,) = said(caplog)
    assert f"it belongs to user {os.getuid()}; expected 12345" in text


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_an_entry_of_another_user_is_not_used(kept, caplog):
    found, path = kept
    os.chown(path, 12345, 12345)
    assert found.get("key") is None
    assert "it belongs to user 12345" in said(caplog)[0]


def test_an_entry_that_others_can_write_to_is_not_used(kept, caplog):
    found, path = kept
    path.chmod(0o646)
    assert found.get("key") is None
    assert "others can write to it (mode 646)" in said(caplog)[0]


def test_what_is_written_is_for_this_user_alone(tmp_path):
    place = tmp_path / "cache"
    Store(place).put("key", "text", {})
    assert [oct(p.stat().st_mode & 0o777) for p in (place, place / "key.kernel")] == [
        "0o700",
        "0o600",
    ]
    assert (place / "secret").stat().st_mode & 0o777 == 0o600


FULL = """
    import resource, sys
    from pathlib import Path
    from selfbyoc.codegen.cache.store import Store
    store = Store(Path(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    for n in range(5):
        store.put(f"key{n}", "".join(map(str, range(5000))), {})
"""


def test_a_full_disk_leaves_nothing(kept):
    found, path = kept
    before = sorted(path.parent.iterdir())
    program = textwrap.dedent(FULL)
    done = subprocess.run(
        [sys.executable, "-c", program, str(path.parent)], capture_output=True, text=True
    )
    assert (done.returncode, sorted(path.parent.iterdir())) == (0, before)
    assert done.stderr.count("cannot be written: File too large") == 1
    assert found.get("key") == "text"


def test_what_a_killed_process_left_goes(kept):
    found, path = kept
    old, young = path.parent / ".a.part", path.parent / ".b.part"
    for part in (old, young):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    found.trim()
    assert (old.exists(), young.exists()) == (False, True)


def test_a_kernel_of_no_size_at_all_is_not_kept(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(entry, "LARGEST", 100)
    Store(tmp_path).put("key", "text" * 100, {})
    assert entries(tmp_path) == []
    assert "expected at most 100" in said(caplog)[0]
