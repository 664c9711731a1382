"""The zoo: models from outside, tried one by one and told in docs/models.md."""
