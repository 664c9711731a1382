"""The executor matrix: programs, ways to build and call them, and what each gives."""
