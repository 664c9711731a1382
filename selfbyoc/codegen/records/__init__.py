"""Tuning records: what tuning found, as files, and which of them are in force for a kernel."""
