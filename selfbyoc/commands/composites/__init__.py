"""`composites`, `ops`, `lint`, `op-info` and `cache`: what there is, without a model."""
