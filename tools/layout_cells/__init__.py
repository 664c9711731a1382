"""What tools/layout_passes.py runs: programs, TVM's layout passes, cells, and the page."""
