"""Rewards of attempts that used tools."""
