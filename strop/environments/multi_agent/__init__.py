"""What conversations are played in: teams, games under a referee, goals in parts, worlds that are made up."""
