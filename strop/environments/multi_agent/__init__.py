"""Agent teams, refereed games, subgoals and simulated environments."""
