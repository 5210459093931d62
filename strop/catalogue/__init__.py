"""Catalogue of papers and modules, read from docstrings and comments without importing them."""
