"""Schedules for GPUs: stages over shared rows as one kernel, or a kernel for each stage."""
