"""Execution of one run: opening, probes, provenance, checkpoints, stop."""
