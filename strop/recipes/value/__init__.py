"""What was expected: critics, probes and guidance by values."""
