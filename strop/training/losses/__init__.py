"""Losses per token: policy gradients, preferences, KL and entropy terms, imitation."""
