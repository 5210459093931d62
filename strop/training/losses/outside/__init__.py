"""Losses on what others wrote: teachers, hints, feedback."""
