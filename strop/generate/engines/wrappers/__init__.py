"""Engines around other engines."""
