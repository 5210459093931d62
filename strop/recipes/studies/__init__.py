"""The project's own comparisons, which reproduce no paper."""
