"""Engine of masked diffusion models."""
