"""Attempts with help: hints, examples, feedback, teachers."""
