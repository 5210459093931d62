"""Tasks from files and datasets, train/held-out splits, and answer extraction."""
