"""Special tokens: control tokens of chat templates, mask tokens."""
