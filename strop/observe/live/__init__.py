"""Live state of a run: progress bar, status, stalls."""
