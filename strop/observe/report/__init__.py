"""Report of a run: pages, charts, tables."""
