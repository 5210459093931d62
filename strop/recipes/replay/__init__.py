"""What is kept, and learned from again."""
