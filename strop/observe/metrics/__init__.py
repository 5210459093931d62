"""Metrics of a run, computed live and from its ledger."""
