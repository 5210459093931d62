"""vLLM as an inference engine."""
