"""Convolutions whose lanes are output channels."""
