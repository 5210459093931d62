"""Preflight checks of a run: what cannot work is refused, what is biased or useless is a warning."""
