"""Caches shared by gates."""
