"""LLM judges: prompts, and parsers of their answers."""
