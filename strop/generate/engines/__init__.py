"""Inference engines: torch on CPU, paged attention on GPU, vLLM, masked diffusion, and wrappers."""
