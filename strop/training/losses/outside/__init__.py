"""Losses on text from outside the policy: teachers, hints, feedback."""
