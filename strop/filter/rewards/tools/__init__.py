"""Rewards of rollouts that used tools."""
