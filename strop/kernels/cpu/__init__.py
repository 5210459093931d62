"""Kernels in C for a CPU, compiled when they are first needed by the compiler that is there."""
