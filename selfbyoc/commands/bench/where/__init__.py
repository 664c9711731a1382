"""`selfbyoc bench MODEL.onnx --where`: a roofline of a network. Which kernel takes how long, what
it would take at least, and what the peers take for the same nodes of the model.
"""
