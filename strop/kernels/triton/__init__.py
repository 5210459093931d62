"""Kernels in Triton, imported only where there is a GPU."""
