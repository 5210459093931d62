"""Recipes: system."""
