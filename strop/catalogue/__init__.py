"""What the tree says about itself, read from docstrings and comments without importing what it is about."""
