"""ONNX models before TVM's frontends read them: what is computed, taken apart, written otherwise."""
