"""Strategies: which rollouts of a group are made."""
