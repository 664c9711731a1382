"""The te.compute of every op of the vocabulary."""
