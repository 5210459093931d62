"""How generation and training run side by side."""
