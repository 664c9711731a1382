"""What is done to an ONNX model before TVM's frontends read it."""
