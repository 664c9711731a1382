"""Schedules for GPUs: a chain of stages as one kernel of thread blocks, or each stage as its own."""
