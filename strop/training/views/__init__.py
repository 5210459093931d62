"""Views of completions for masked diffusion models: which tokens are masked in a forward pass."""
