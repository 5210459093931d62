"""Algorithms that everybody compares with."""
