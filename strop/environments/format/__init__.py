"""Formats of completions: think tags, actions, hints, demonstrations."""
