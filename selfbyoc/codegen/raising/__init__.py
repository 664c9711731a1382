"""PrimFuncs back to ops of a graph, in the layouts that they have now."""
