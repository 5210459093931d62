"""Comparisons of the project's own, no paper's recipe."""
