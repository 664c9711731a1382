"""`tune` and `records`."""
