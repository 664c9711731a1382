"""What both commands say of a run."""

from __future__ import annotations

from pathlib import Path


def commit(root: Path) -> str:
    """Of the code; the results themselves change while it runs. Or "unknown"."""
    from selfbyoc.common.probes import ask

    git = ["git", "-C", str(root)]
    head = ask([*git, "rev-parse", "--short", "HEAD"], r"^[0-9a-f]+\n$")
    changed = ask([*git, "diff", "--quiet", "HEAD", "--", "selfbyoc"], "")
    if head.why_not:
        return "unknown"
    return head.printed.strip() + (", changed" if changed.why_not else "")
