"""The ops of the vocabulary, each declared once: forms, compute, meaning in NumPy."""
