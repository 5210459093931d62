"""Recipes of papers about rewards: their sources and their shaping."""
