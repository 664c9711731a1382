"""What TVM's own fusion makes of a program: its kernels, and the rule that keeps them apart."""
