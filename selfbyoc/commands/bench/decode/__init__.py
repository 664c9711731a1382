"""`bench --decode CONFIG`: language models token by token, ours beside llama.cpp, ONNX Runtime's
GenAI and OpenVINO, of the same seeded weights.
"""
