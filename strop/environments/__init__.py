"""Environments: tasks, multi-turn episodes, answer checks, and wrappers around them."""
