"""Observation of runs: metrics, health checks, reports, dashboard, trackers."""
