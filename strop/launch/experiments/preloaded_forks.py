"""Fork server with preloaded imports, from which runs side by side are forked.

It uses no GPU and starts no thread, so that a fork is safe. Imports that take seconds are paid once.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running

IMPORTED = (
    "strop.launch.running.launch",
    "strop.recipes.setting",
    "transformers.models.llama.modeling_llama",  # the family of the models that many runs are made with
)


def warm() -> ForkServerContext:
    """Let it begin to import, if it has not, and give what starts processes from it."""
    # a library that asks on import whether there is a GPU must not open it: a fork could not use it any more
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    # numpy's products take all cores in every process, and no later call tells them otherwise: 18 runs on 16 cores were
    # 40 times slower so. torch is told by each run
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED))
    ensure_running()
    return context
