"""`selfbyoc.melting`: loop nests, where values lie, and what a fused kernel saves."""
