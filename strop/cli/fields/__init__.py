"""Fields of recipes and runs on the command line: parsing, help, overrides."""
