"""Rewards for rollouts with tool use."""
