"""Files of a run that say how it went: metrics, held-out scores, summary, provenance."""
