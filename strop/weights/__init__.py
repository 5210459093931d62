"""Delivery of weights from the trainer to engines, and proof of it by fingerprint."""
