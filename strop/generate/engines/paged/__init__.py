"""GPU inference engine with a paged KV cache."""
