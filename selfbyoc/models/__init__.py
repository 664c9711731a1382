"""Models from files: ONNX, and the small ones that the onnx wheel carries."""
