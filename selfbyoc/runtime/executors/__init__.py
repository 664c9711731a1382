"""What runs a library, a generation each. A file needs nothing of TVM's Python package."""
