"""What `tools/load.py` does to the library: each part is a process, and says figures."""
