"""Recipes: value."""
