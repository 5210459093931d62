"""Pocket: the bundled model, and the script that trains it."""
