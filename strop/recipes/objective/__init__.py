"""What is minimized, and who gets the advantage."""
