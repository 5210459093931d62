"""Prompts, validation and probing shared by task generators."""
