"""Tasks about replies to other tasks: verdicts, rankings, preferences."""
