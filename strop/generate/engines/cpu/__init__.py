"""CPU inference engine in torch and C, for small models."""
