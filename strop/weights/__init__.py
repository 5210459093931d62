"""How weights are named, proven and delivered."""
