"""Environments of other libraries as worlds."""
