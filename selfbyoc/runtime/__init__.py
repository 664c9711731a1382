"""Build, load and run a model; threads; NumPy's meaning of the ops."""
