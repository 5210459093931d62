"""What a run did, does and is worth: metrics, report, status, and where else metrics go."""
