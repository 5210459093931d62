"""What buffers have in common."""
