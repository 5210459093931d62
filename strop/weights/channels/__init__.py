"""Weight channels: in memory, or in shared memory."""
