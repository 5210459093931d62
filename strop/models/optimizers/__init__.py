"""Optimizers, and how their states are stored in few bits."""
