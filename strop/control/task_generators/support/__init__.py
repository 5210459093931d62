"""Parts that several task generators share: prompts, validation, probing."""
