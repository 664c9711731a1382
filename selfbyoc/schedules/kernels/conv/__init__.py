"""Direct convolutions."""
