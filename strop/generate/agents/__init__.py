"""Agents: how one rollout of a task is played."""
