"""Parts that several budgets share."""
