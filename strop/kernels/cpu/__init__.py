"""CPU kernels in C, compiled at first use with the system's compiler."""
