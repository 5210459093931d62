"""Stand-ins for LLM judges."""
