"""What rollouts are worth: rewards, and what is kept."""
