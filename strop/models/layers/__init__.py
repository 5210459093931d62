"""Layers of models: attention, decoder blocks, adapters, quantized linear layers, heads."""
