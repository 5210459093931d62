"""Environments around other environments."""
