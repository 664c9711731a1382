"""The neutral graph between the graph IRs and everything else: read, canonicalise, emit."""
