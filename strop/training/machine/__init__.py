"""The machinery of training: forward and backward passes, memory, optimizer, ranks."""
