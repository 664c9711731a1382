"""Kernel families: plan, pack, compute, schedule."""
