"""Recipes: reward."""
