"""The demonstration: a whole model from ONNX, partitioned, built, checked and timed."""
