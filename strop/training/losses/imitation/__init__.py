"""Losses that follow demonstrations or a teacher, beyond plain likelihood."""
