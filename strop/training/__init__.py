"""Advantages, losses, and trainers that turn groups of rollouts into new weights."""
