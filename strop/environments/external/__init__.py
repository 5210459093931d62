"""Adapters for environments of other libraries: Gymnasium, reasoning-gym, verifiers."""
