"""Attempts that branch off from others, and searches over them."""
