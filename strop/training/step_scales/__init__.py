"""Factors on the learning rate of single steps."""
