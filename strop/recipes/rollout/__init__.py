"""Which rollouts are made, and how they unfold."""
