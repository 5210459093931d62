"""Recipes: rollout."""
