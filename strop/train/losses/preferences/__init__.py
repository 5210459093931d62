"""What reward models minimize."""
