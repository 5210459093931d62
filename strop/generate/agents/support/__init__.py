"""Episode loops shared by agents."""
