"""Task tables, prompt embeddings and calibration shared by pass-rate estimators."""
