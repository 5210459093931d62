"""Certificate of an environment and its rewards: checks, results, page."""
