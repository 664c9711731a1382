"""Tuning: a composite's fused function as a task, its numbers as decisions, records of the best."""
