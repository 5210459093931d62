"""State shared by replay buffers."""
