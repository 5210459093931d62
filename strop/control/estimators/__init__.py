"""Pass-rate estimators: the current success probability of a task."""
