"""Where an engine computes: inline, in a local process, or in a Ray actor."""
