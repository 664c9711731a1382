"""Built-in composites on CPUs that this machine is not: what `tools/portability.py` is made of."""
