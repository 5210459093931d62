"""RL post-training of language models: one pipeline in which every published mechanism is a small file."""

import os

# How long OpenMP's threads spin while they wait for each other before they sleep. Beside an engine in a process of its
# own, a thread that spins keeps the core from the very one it waits for: training with two threads on two cores was
# slower by a tenth with the long spinning that is usual. It is read when torch is first imported, so it is said here.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
