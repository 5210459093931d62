"""Recipes: agent."""
