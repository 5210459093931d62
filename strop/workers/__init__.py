"""Child processes: start, messages, supervision, end."""
