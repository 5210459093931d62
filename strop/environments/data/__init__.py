"""Tasks from files and datasets, splits, and answers in completions."""
