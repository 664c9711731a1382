"""Transposed convolutions as ordinary ones and an interleaved write."""
