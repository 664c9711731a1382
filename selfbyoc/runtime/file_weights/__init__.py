"""A file's weights in pages of its own: kernels read them where the system maps the file, so
nothing is copied when it is loaded, and processes share them. TVM alone copies what its executors
hold.

A kernel that is given constants gets a stub beside it, which the executor calls in its place: it
passes on what it is given, and the constants.
"""
