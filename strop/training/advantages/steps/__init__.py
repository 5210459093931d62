"""Advantage for the steps of rollouts that act in an environment over several turns."""
