"""A browser without a window: Chromium, for pictures of pages and for tests of what they show."""

from __future__ import annotations

import shutil
import tempfile

from selfbyoc.common.probes import ask, once

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu")
# A page whose script computes what is read.
_PAGE = "data:text/html,<p id=told></p><script>told.textContent = 6 * 7</script>"


def chromium() -> str:
    """The path of the first that there is; '' where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), "")


def cannot_show() -> str:
    """Why no page is shown here, or ''."""
    path = chromium()
    return once("Chromium", [path], lambda: _asked(path)) if path else "no chromium on PATH"


def _asked(path: str) -> str:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [path, *FLAGS, f"--user-data-dir={folder}", "--dump-dom", _PAGE]
        return ask(command, ">42</p>", env={"HOME": folder}).why_not
