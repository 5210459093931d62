"""Sandbox for Python programs: warm interpreters that fork once per program."""
