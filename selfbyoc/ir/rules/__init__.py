"""The rules of canonicalisation, by what importers do."""
