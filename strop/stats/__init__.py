"""Statistics: intervals, tests, sample sizes."""
