"""Losses, advantages, preference pairs and corrections."""
