"""Kernels of symbolic sizes, learnt from those of some sizes."""
