"""Mutants of a user's ONNX model: a part cut out of it, changed, and judged by ONNX Runtime."""
