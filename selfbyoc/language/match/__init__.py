"""A pattern on an OpGraph: matches, and the nearest miss."""
