"""Result files of a run: metrics, held-out scores, summary, provenance."""
