"""Plans of kernels by the million: drawn programs, machines and decisions; nothing is built."""
