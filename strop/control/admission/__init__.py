"""Admission rules: how far generation may run ahead of training (staleness bound)."""
