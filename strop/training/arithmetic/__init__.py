"""Formulas shared by advantages, losses and corrections: ratios, returns, sums over siblings."""
