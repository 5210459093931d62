"""Rollout budgets: the number of rollouts per task."""
