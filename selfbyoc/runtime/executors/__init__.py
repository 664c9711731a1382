"""What runs a library, a generation each: TVM's runtime alone, and nothing of its compiler."""
