"""Engine in plain torch and C, for CPUs and small models."""
