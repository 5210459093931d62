"""Where rewards come from, and how they are shaped."""
