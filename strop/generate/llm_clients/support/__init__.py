"""Parts that several LLM clients share: retries, HTTP."""
