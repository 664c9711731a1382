"""What mkdocs.yml asks for while the site is built."""

from __future__ import annotations

import re
from typing import Any

_FOR_ONE = re.compile(r"^```(python|text) (relay(?: fork| stock)?|relax|torch)$", re.MULTILINE)
_TITLES = {
    "relay": "Relay", "relax": "Relax", "torch": "with PyTorch",
    "relay fork": "Relay, BitBLAS's fork", "relay stock": "Relay, a stock build",
}  # fmt: skip


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What a block of code is for, a second word on its fence, becomes its title."""
    return _FOR_ONE.sub(lambda m: f'```{m[1]} title="{_TITLES[m[2]]}"', markdown)
