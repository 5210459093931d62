"""What admission rules see of a run."""
