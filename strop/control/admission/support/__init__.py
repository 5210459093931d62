"""State of a run as admission rules see it."""
