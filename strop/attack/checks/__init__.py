"""Checks of the certificate: each a coroutine that examines rewards and returns its findings."""
