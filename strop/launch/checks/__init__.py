"""Checks before a run has a folder: what cannot work is refused, what is doubtful is said."""
