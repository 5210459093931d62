"""Recipes: studies."""
