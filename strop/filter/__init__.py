"""Filtering: rewards of rollouts, and gates that drop groups before training."""
