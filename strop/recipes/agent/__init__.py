"""Agents that act over several turns."""
