"""Chat templates: rendering, pieces of conversations, tool call formats."""
