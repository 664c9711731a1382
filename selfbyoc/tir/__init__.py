"""Passes over a scheduled PrimFunc, before and after TVM lowers it: for what TensorIR lacks."""
