"""Judging tasks derived from other environments: true/false, pairwise, ranking, first error."""
