"""Digests of files, which threads share out."""

import pytest

from selfbyoc.common import digests
from selfbyoc.errors import InputError


def test_every_byte_and_their_order_count(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "_PART", 4096)
    path, found = tmp_path / "file", set()
    a, b = b"a" * 4096, b"b" * 4096
    contents = [b"", b"a", a, a + b, b + a, a + b + b"c", a + b + b"d", a + b + a, a + b"a" + b]
    for data in contents:
        path.write_bytes(data)
        assert digests.digest_of(path) == digests.digest_of(path)
        found.add(digests.digest_of(path))
    assert len(found) == len(contents)


@pytest.mark.parametrize("part", [1, 2, 3, 5, 8, 64])
def test_where_a_text_stands(part, tmp_path, monkeypatch):
    """Also where it begins in one part and ends in another."""
    monkeypatch.setattr(digests, "_PART", part)
    path, text = tmp_path / "file", b"aba"
    path.write_bytes(b"abaxababa" + b"x" * 7 + b"ab" + b"aba")
    expected = [0, 4, 6, 16, 18]
    assert digests.digest_and_places(path, text) == (digests.digest_of(path), expected)
    assert digests.digest_and_places(path, b"none")[1] == []


def test_what_is_no_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        digests.digest_of(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        digests.digest_of(tmp_path / "none")
