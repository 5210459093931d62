"""From groups to new weights."""
