"""Recipes about the training objective: losses, advantages, preference optimization and off-policy corrections."""
