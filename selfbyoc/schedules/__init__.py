"""The built-in composites, one file for each op family."""

from .dense import dense, dense_gelu_dense

# Earlier wins: larger composites first.
BUILTIN = (dense_gelu_dense, dense)
