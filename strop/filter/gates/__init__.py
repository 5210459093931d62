"""Gates: filters that keep, trim or drop groups before training."""
