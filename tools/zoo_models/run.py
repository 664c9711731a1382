"""What both commands say of a run."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit(root: Path) -> str:
    """Of the code; the results themselves change while it runs."""
    git = ["git", "-C", str(root)]
    head = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "selfbyoc"], check=False)
    return head.stdout.strip() + (", changed" if changed.returncode else "")
