"""`selfbyoc.explain`: what was decided about every composite and root, and why."""
