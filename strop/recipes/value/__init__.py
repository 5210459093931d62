"""Recipes with value estimates: critics, probes, pass-rate baselines and value-guided decoding."""
