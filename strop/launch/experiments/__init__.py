"""Many runs side by side, and runs made again from their ledger."""
