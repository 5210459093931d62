"""Rewards from LLM judges."""
