"""Commands of strop, one module per command."""
