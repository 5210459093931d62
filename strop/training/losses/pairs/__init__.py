"""Losses on the better and the worse of two rollouts, in place of a reward model."""
