"""Retries and HTTP requests of LLM clients."""
