"""LLM clients: other models asked for text, such as judges, teachers and task generators."""
