"""Op info: the ops of a stacked function, with layouts proved whatever was done to it."""
