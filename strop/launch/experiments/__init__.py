"""Many runs side by side, and retraining of runs from their ledgers."""
