"""What `tools/many_cores.py` counts, measures and computes."""
