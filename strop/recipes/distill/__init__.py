"""Imitation: demonstrations and teachers."""
