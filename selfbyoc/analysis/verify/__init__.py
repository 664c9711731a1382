"""`selfbyoc.verify`: every kernel on edge inputs, against references that are not ours."""
