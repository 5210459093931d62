"""The report of a run: pages, charts, tables."""
