"""`selfbyoc new`: a composite to begin with, its test, and the package that ships it."""
