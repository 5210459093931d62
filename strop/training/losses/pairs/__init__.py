"""Losses on the better and the worse of two attempts, in place of a reward model."""
