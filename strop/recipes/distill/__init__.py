"""Recipes of imitation and distillation: demonstrations and teachers."""
