"""Storage of a run: its folder, ledger, checkpoints and source."""
