"""Engine for masked diffusion language models."""
