"""Engine wrappers: routing, chunking, guided decoding, reference models."""
