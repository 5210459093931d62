"""Programming tasks of tables: tests in the formats of the usual datasets, and check functions."""
