"""A run while it goes on: progress bar, status, stalls."""
