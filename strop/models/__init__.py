"""Models: architectures on packed tokens, model folders, and the bundled models."""
