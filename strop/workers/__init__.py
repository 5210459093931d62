"""One stack of child processes: how they start, talk, are watched and end."""
