"""Chat templates: rendering, incremental tokenization, tool-call formats."""
