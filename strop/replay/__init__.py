"""Replay buffers: groups that wait for training, and groups that are trained on again."""
