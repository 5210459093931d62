"""How a completion is laid out: think tags, actions, hints, demonstrations."""
