"""Models: architectures on packed tokens, folders, and those that come with the package."""
