"""Sampling of tokens with counter-based random numbers."""
