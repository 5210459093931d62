"""Tasks about completions to other tasks: verdicts, rankings, preferences."""
