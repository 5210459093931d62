"""Recipes: objective."""
