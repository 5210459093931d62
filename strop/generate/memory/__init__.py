"""Lessons kept over a run: store, reflection, injection into prompts."""
