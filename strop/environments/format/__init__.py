"""How a reply is laid out: think tags, actions, hints, demonstrations."""
