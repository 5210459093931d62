"""Commands of strop, one module each."""
