"""Recipes of system papers: asynchronous and parallel generation and training."""
