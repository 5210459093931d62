"""Text processing: similarity, prompts for LLM clients, sanitizing."""
