"""Attempts that read what earlier ones have taught, in words."""
