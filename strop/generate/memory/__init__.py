"""Memory of text lessons over a run: store, reflection, injection into prompts."""
