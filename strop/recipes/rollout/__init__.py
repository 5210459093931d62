"""Recipes that change how rollouts are made: tree search, branching, prefixes, pruning, decoding."""
