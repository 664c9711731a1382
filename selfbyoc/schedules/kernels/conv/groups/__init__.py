"""Depthwise and grouped convolutions whose lanes are groups."""
