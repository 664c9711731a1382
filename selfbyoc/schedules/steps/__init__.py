"""Reusable parts of schedules."""
