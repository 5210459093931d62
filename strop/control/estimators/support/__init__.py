"""Parts that several pass-rate estimators share: task tables, embeddings, calibration."""
