"""Recipes: classics."""
