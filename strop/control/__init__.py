"""What is tried next, how often, and how far ahead."""
