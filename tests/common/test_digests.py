"""Digests of files, which threads share out."""

import pytest

from selfbyoc.common import digests
from selfbyoc.errors import InputError


def test_every_byte_and_their_order_count(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "_PART", 4096)
    monkeypatch.setattr(digests, "_READ", 1024)
    path, found = tmp_path / "file", set()
    a, b = b"a" * 4096, b"b" * 4096
    contents = [b"", b"a", a, a + b, b + a, a + b + b"c", a + b + b"d", a + b + a, a + b"a" + b]
    for data in contents:
        path.write_bytes(data)
        assert digests.digest_of(path) == digests.digest_of(path)
        found.add(digests.digest_of(path))
    assert len(found) == len(contents)


def test_what_is_no_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        digests.digest_of(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        digests.digest_of(tmp_path / "none")
