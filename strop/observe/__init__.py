"""What a run did, does and is worth: figures, report, status, and where else figures go."""
