"""Parts that several strategies share."""
