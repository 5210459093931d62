"""Prices of rollouts shared by budgets."""
