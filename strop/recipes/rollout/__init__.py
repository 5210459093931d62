"""Which attempts are made, and how they unfold."""
