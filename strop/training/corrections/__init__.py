"""Off-policy corrections: importance weights and masks per token."""
