"""What a user writes: composites, patterns, cases, choices."""
