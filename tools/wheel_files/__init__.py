"""ONNX files of other people's packages: tools/files.py."""
