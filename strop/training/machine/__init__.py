"""Forward and backward passes, memory, optimizer and ranks of a trainer."""
