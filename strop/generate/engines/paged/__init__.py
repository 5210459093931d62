"""Engine with paged key-value memory, for a GPU."""
