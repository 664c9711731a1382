"""What runs a library, a generation each, without TVM's Python package: a file needs none of it."""
