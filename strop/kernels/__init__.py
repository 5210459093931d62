"""Fused operations; each has a plain torch counterpart that is the reference and what runs on a CPU."""
