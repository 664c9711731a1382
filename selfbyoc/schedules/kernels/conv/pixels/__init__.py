"""Convolutions whose lanes are pixels of padded rows."""
