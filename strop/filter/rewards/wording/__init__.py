"""Rewards for how a reply is worded, whatever it says."""
