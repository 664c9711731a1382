"""Compiled kernels on disk, so that a model's second build compiles nothing again."""
