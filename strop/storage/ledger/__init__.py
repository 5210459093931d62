"""Ledger of a run: the fate of every group and rollout, on SQLite."""
