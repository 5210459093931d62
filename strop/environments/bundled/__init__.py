"""Environments that are looked at, visited or helped through, turn by turn."""
