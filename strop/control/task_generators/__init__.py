"""Task generators: new tasks from finished groups."""
