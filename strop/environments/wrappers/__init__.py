"""Episodes around other episodes."""
