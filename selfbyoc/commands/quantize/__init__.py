"""`quantize`: a model's floats as levels, and what that changes."""
