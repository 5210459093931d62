"""Reward functions of rollouts."""
