"""Kernels of a GPU without one: run as OpenCL on the CPU, compiled for CUDA, read for mistakes."""
