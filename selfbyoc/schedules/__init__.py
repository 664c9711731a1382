"""The built-in composites, one file for each op family."""

BUILTIN: tuple = ()
