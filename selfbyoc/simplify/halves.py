"""Halves are storage: ops of float16 and bfloat16 compute in float32, and round where a model casts
and where it returns. CPUs have few instructions of halves, if any; each op rounded for itself is
no nearer to what the model means. ONNX Runtime does the same.

Weights of dense layers stay halves in memory, and become floats in registers.
"""

LEAST = 1024  # elements of a weight that stays: of less there is nothing to save
