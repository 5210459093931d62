"""What attempts are worth: rewards, and what is kept."""
