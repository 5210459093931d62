"""Control: task selection, number of rollouts per task, and how far generation runs ahead of training."""
