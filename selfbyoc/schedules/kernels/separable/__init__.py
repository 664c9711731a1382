"""Depthwise convolutions with the pointwise ones around them."""
