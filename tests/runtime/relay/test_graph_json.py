"""The graph executor's program: what JSON escapes, and TVM 0.17's reader does not know."""

import pytest

from selfbyoc.tvm import GENERATION

if GENERATION != "relay":
    pytest.skip("Relay's", allow_module_level=True)

from selfbyoc.runtime.relay.graph_json import read, write

TEXTS = [
    "plain",
    "\x1b[2J\x07\b\f",
    'a"b',
    "\\u001b",
    "\\\\b",
    "line\nend\ttab\r",
    "ä\u202e\x9b",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_written_is_read_again(text):
    written = write({"name": text, "nodes": [1, [text, None]]})
    assert read(written) == {"name": text, "nodes": [1, [text, None]]}
    assert r"\u00" not in written.replace("\\\\", "")
    assert not any(escape in written.replace("\\\\", "") for escape in (r"\b", r"\f"))
