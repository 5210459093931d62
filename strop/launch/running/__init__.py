"""From a `Run` to a trained model: checks, advice, launch, stop, and training again from the ledger."""
