"""Episodes of other libraries as environments."""
