"""Advantages for the steps of multi-turn rollouts."""
