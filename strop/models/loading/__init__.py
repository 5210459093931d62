"""Model folders: what they must hold, how weights are read, merged and exported."""
