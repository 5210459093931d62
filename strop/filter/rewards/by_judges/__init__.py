"""Rewards that a judge gives: an adviser who is asked about replies."""
