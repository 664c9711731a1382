"""In the place of PyTorch, in processes that tests start: TVM imports it where it is installed, and
that is half of the time that such a process takes to start.
"""

raise ImportError("PyTorch is hidden from the processes that tests start (tests/support/no_torch)")
