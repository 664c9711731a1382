"""Winograd convolutions."""
