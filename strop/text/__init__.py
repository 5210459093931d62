"""Text without tokens: similarity, prompts for language models, and what makes text safe to show."""
