"""Optimizers, and storage of their states in few bits."""
