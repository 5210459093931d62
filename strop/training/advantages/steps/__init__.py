"""Credit for the steps of attempts that act in a world over several turns."""
