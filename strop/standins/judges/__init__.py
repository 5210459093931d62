"""Rules that stand in for LLM judges."""
