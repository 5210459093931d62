"""Model folders: required files, reading of weights, merging and export."""
