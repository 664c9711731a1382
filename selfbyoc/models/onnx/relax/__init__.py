"""What an ONNX model is rewritten to for Relax: shapes as expressions of sizes."""
