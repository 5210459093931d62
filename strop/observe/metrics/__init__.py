"""Metrics of a run, computed while it goes on and from its ledger."""
