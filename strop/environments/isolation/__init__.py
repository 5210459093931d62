"""Environments in processes of their own: both ends of the conversation, and blocks of answers."""
