"""Processes in which foreign code runs and can be ended."""
