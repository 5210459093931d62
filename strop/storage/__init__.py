"""A run on disk: its folder, ledger, checkpoints and its own source."""
