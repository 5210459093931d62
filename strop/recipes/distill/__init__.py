"""Recipes: distill."""
