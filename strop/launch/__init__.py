"""From a run to a trained model: checks before it, the run itself, and experiments of many runs."""
