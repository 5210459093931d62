"""Strategies: how the rollouts of a group are sampled."""
