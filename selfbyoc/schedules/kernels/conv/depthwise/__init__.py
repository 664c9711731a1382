"""A window over each channel by itself, along the rows of its image: plan, compute and schedule."""
