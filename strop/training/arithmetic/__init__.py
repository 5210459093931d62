"""Sums and ratios that several mechanisms of training share."""
