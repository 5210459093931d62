"""Launch of runs: checks before a run, the run itself, and experiments of many runs."""
