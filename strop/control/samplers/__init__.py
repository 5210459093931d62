"""Task samplers: curricula, bandits, replay of tasks."""
