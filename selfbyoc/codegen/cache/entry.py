"""One entry of the cache as bytes: signed with the folder's secret, then compressed."""

from __future__ import annotations

import hmac
import json
import zlib
from collections.abc import Mapping

_MAGIC = b"selfbyoc-cache 2\n"  # the format; another one is another name, and not read
_SIGNATURE = 32
LARGEST = 32 << 20  # bytes of an entry, on disk and as text; a kernel takes 10 to 60 KB


def packed(key: str, text: str, about: Mapping[str, object], secret: bytes) -> bytes:
    """What is written to disk; `unpacked` is the inverse."""
    body = json.dumps({"key": key, "about": dict(about), "text": text}).encode()
    data = zlib.compress(body, 1)
    if max(len(body), len(data) + len(_MAGIC) + _SIGNATURE) > LARGEST:
        raise ValueError(f"it has {len(body)} bytes; expected at most {LARGEST}")
    return _MAGIC + _signature(secret, data) + data


def unpacked(data: bytes, key: str, secret: bytes) -> tuple[str, dict[str, object]]:
    """The text and what was said of it; ValueError for anything that `packed` did not write with
    this secret. Nothing is parsed before the signature is known to be right.
    """
    start = len(_MAGIC) + _SIGNATURE
    if not data.startswith(_MAGIC):
        raise ValueError("another format")
    if not hmac.compare_digest(_signature(secret, data[start:]), data[len(_MAGIC) : start]):
        raise ValueError("its signature differs: it is damaged, or was not written here")
    entry = _entry(data[start:])
    if entry.get("key") != key:
        raise ValueError("it was written under another key")
    text, about = entry.get("text"), entry.get("about")
    if not isinstance(text, str) or not isinstance(about, dict):
        raise ValueError("it has no text")
    return text, about


def _entry(data: bytes) -> dict[str, object]:
    try:
        body = zlib.decompressobj().decompress(data, LARGEST)
        entry = json.loads(body)
    except (zlib.error, RecursionError) as err:
        raise ValueError(str(err)) from err
    if not isinstance(entry, dict):
        raise ValueError("it holds no fields")
    return entry


def _signature(secret: bytes, data: bytes) -> bytes:
    return hmac.digest(secret, data, "sha256")
