"""Trainers: forward, backward and optimizer step of a policy."""
