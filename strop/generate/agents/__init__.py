"""Agents: the turn loop of one rollout in its environment."""
