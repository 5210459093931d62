"""Bandit arms, task pools and mixtures shared by samplers."""
