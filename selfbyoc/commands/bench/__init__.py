"""`python -m selfbyoc bench`: ours against other runtimes, each in a process of its own."""
