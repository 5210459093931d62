"""Advantages per token, turn or rollout, from rewards and values."""
