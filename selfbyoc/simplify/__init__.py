"""Graph to simpler graph, before anything is matched.

A file says what a rewriting does; its files in `relax/` and `relay/` do it to that IR, and their
`__init__.py` is the list that runs them, in order.
"""
