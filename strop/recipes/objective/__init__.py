"""What is minimized, and who gets the credit."""
