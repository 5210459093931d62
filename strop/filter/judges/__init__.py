"""LLM judges: how they are asked, and how their answers are read."""
