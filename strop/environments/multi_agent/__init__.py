"""What conversations are played in: teams, games under a referee, goals in parts, environments that are made up."""
