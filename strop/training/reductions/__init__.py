"""Reductions from token losses to the loss of a step."""
