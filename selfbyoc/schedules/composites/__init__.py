"""The built-in composites: pattern, check, reference, cases, and which kernel."""
