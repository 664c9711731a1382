"""Transposes moved through a graph, where that moves less."""
