"""Rewards about what was said: by agents to each other, by the world to them, and where an answer stands."""
