"""Statistics without a run: intervals, tests, sample sizes."""
