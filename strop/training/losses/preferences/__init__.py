"""Losses of reward models."""
